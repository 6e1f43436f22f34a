// Listens whether a server still answers, for the server's chart, which decides when it is asked. A server with a call in flight
// is not called silent: it may not read while it works, and its calls have deadlines of their own. A server that says too much
// is read more slowly.

import type { FromConnection } from '../../../machines/server.ts';
import type { Outcome } from '../../calls/call.ts';
import type { Failure } from '../../protocol/failures.ts';
import type { Member } from '../member.ts';
import type { Link } from './link.ts';
import type { Inquire } from './session.ts';
import { doubtAfter, verdictOn } from './verdict.ts';

export type HealthOptions = {
  readonly member: Member;
  readonly link: Pick<Link, 'pause' | 'resume'>;
  readonly inquire: Inquire;
  readonly tell: (event: FromConnection) => void;
  readonly onSick: (why: string) => void;
};

export type Health = ReturnType<typeof watchHealth>;

const WINDOW_MS = 100;
/** Ten thousand notifications a second are more than anybody reads. */
const NOISE_PER_WINDOW = 1_000;
const LOOK_MS = 250;
/** How often a server that is ill is asked where pings are off, and nobody says how often. */
const USUAL_MS = 30_000;

export function watchHealth({ member, link, inquire, tell, onSick }: HealthOptions) {
  let heardAt = performance.now();
  /** What the chart was told last: it need not hear of every word. */
  let told: 'heard' | 'silent' = 'heard';
  let windowAt = heardAt;
  let noise = 0;
  let timer: NodeJS.Timeout | undefined;
  let resumer: NodeJS.Timeout | undefined;

  function look(): void {
    const { idleStopMs, pingMs } = member.config.settings;
    const { lane, subscriptions } = member;
    if (idleStopMs > 0 && lane.idleMs >= idleStopMs && subscriptions.isEmpty) tell({ type: 'connection.quiet' });
    if (pingMs === 0) return;
    const isSilent = performance.now() - heardAt >= pingMs;
    if (isSilent && told === 'heard' && lane.inFlight === 0) silent();
    if (!isSilent && told === 'silent') heard();
  }

  function heard(): void {
    told = 'heard';
    tell({ type: 'connection.heard' });
  }

  function silent(): void {
    told = 'silent';
    tell({ type: 'connection.silent' });
  }

  const unreachable = (why: string): void => tell({ type: 'connection.unreachable', why });

  function judge(outcome: Outcome, askedAt: number): void {
    const { pingMs, pingTimeoutMs } = member.config.settings;
    const verdict = verdictOn(outcome);
    if (!outcome.ok) member.logger.debug(`ping: ${outcome.failure.message}`);
    if (verdict.is === 'unreachable') onSick(verdict.why);
    else if (verdict.is === 'silent' && heardAt < askedAt)
      onSick(`it did not answer a ping within ${pingTimeoutMs} ms`);
    else if (verdict.is === 'deaf') tell({ type: 'connection.deaf' });
    else if (verdict.is === 'ill') {
      const { why, retryMs } = verdict;
      member.logger.warn(why);
      tell({ type: 'connection.ill', why, everyMs: pingMs || USUAL_MS, retryMs });
    } else {
      heardAt = performance.now();
      heard();
    }
  }

  return {
    start(): void {
      clearInterval(timer);
      timer = setInterval(look, LOOK_MS);
      timer.unref();
      member.doubt = silent;
    },
    stop(): void {
      clearInterval(timer);
      clearTimeout(resumer);
      member.doubt = undefined;
    },
    /** Asks the server whether it is there. */
    probe(): void {
      const askedAt = performance.now();
      told = 'silent';
      inquire('ping', {}, member.config.settings.pingTimeoutMs, (outcome) => judge(outcome, askedAt));
    },
    failed(failure: Failure): void {
      const verdict = doubtAfter(failure);
      if (verdict?.is === 'unreachable') unreachable(verdict.why);
      else if (verdict) silent();
    },
    unreachable,
    noise(): void {
      noise++;
    },
    /** After each chunk: a server that has said too much in this window is not read again before the next. */
    pace(): void {
      const now = performance.now();
      heardAt = now;
      if (now - windowAt >= WINDOW_MS) {
        windowAt = now;
        noise = 0;
      } else if (noise > NOISE_PER_WINDOW) {
        link.pause();
        resumer = setTimeout(link.resume, windowAt + WINDOW_MS - now);
      }
    },
  };
}
