// Whose business it is what a server says or asks: the call on whose own stream it came, or the only call it can be
// working on. Never a guess between two callers.

import type { Lane } from '../calls/lane.ts';
import type { InFlight } from '../calls/request.ts';
import type { Member } from './member.ts';

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

/** So long after an answer a line may still be about that call. */
const ECHO_MS = 1_000;

/** Never a guess between principals; between the sessions of one, the only call in flight is taken for the one. */
export function audienceOf({ lane, config }: Member, origin: string | undefined): Audience {
  if (origin !== undefined) return { to: requestBehind(lane, origin) ? 'caller' : 'nobody' };
  const [working, recent] = [lane.inProgress().map(({ call }) => call), lane.recent(ECHO_MS)];
  if (new Set([...working, ...recent].map(({ principal }) => principal)).size > 1) return { to: 'nobody' };
  if (working.length === 1) return { to: 'caller' };
  const holders = new Set((working.length > 0 ? working : recent).map(({ holder }) => holder));
  if (holders.size === 0) return { to: config.settings.share === 'all' ? 'nobody' : 'everyone' };
  const [session] = holders;
  return holders.size === 1 && session !== undefined ? { to: 'session', session } : { to: 'nobody' };
}
