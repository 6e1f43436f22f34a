// Whose business it is what a server says or asks: the call on whose own stream it came, or the only call it can be
// working on. Never a guess between two callers.

import type { Lane } from '../calls/lane.ts';
import type { InFlight } from '../calls/request.ts';

/** The call that a message of the server belongs to, if that is certain. */
export function requestBehind(lane: Lane, origin: string | undefined): InFlight | undefined {
  if (origin !== undefined) return lane.sent(origin);
  const [only, another] = lane.inProgress();
  return another ? undefined : only;
}

/** Who may read a log line: the caller it came to, the one session all calls belong to, all, or none of those there are. */
export type Audience =
  | { readonly to: 'caller' | 'everyone' | 'nobody' }
  | { readonly to: 'session'; readonly session: string };

export function audienceOf(lane: Lane, origin: string | undefined): Audience {
  if (requestBehind(lane, origin)) return { to: 'caller' };
  const sessions = new Set(lane.inProgress().map(({ call }) => call.session));
  if (sessions.size === 0) return { to: 'everyone' };
  const [session] = sessions;
  return sessions.size === 1 && session !== undefined ? { to: 'session', session } : { to: 'nobody' };
}
