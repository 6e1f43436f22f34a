// Whether a server still answers. It is pinged when it has been silent and has no call in flight: a busy server may not read
// while it works, and its calls have deadlines of their own. A server that says too much is read more slowly.

import type { FromConnection } from '../../../machines/server.ts';
import type { Ask } from '../../catalog/fetch.ts';
import { sentence } from '../../protocol/failures.ts';
import type { Member } from '../member.ts';
import type { Link } from './link.ts';

export type HealthOptions = {
  readonly member: Member;
  readonly link: Pick<Link, 'pause' | 'resume'>;
  readonly ask: Ask;
  readonly tell: (event: FromConnection) => void;
  readonly onSick: (why: string) => void;
};

export type Health = ReturnType<typeof watchHealth>;

const WINDOW_MS = 100;
/** Ten thousand notifications a second are more than anybody reads. */
const NOISE_PER_WINDOW = 1_000;
const LOOK_MS = 250;

export function watchHealth({ member, link, ask, tell, onSick }: HealthOptions) {
  let heardAt = performance.now();
  let windowAt = heardAt;
  let noise = 0;
  let timer: NodeJS.Timeout | undefined;
  let resumer: NodeJS.Timeout | undefined;
  let isAsking = false;

  function look(): void {
    const { settings } = member.config;
    const isIdle = member.lane.idleMs >= settings.idleStopMs && member.subscriptions.isEmpty;
    if (settings.idleStopMs > 0 && isIdle) tell({ type: 'connection.quiet' });
    const isSilent = performance.now() - heardAt >= settings.pingMs;
    if (settings.pingMs > 0 && isSilent && member.lane.inFlight === 0) probe();
  }

  function probe(): void {
    if (isAsking) return;
    isAsking = true;
    const { pingTimeoutMs } = member.config.settings;
    const askedAt = performance.now();
    ask('ping', {}, pingTimeoutMs).then(heard, (error) => {
      isAsking = false;
      // An answer that is an error is still an answer; a remote server may not be reachable at all.
      if (error?.code === 'unavailable') onSick(sentence(error).replace(/; the request was not sent$/, ''));
      else if (error?.code === 'timeout' && heardAt < askedAt)
        onSick(`it did not answer a ping within ${pingTimeoutMs} ms`);
      else member.logger.debug(`ping: ${sentence(error)}`);
    });
  }

  function heard(): void {
    isAsking = false;
    heardAt = performance.now();
  }

  return {
    start(): void {
      clearInterval(timer);
      timer = setInterval(look, LOOK_MS);
      timer.unref();
      member.probe = probe;
    },
    stop(): void {
      clearInterval(timer);
      clearTimeout(resumer);
      member.probe = undefined;
    },
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
