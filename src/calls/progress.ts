// Progress on its way to the caller, at a pace a reader can take: a burst as it comes, then the newest of each interval,
// and always the last one.

import type { World } from '../world/world.ts';
import type { InFlight } from './request.ts';

const INTERVAL_MS = 50;
const BURST_MS = 32 * INTERVAL_MS;

export function relayProgress(request: InFlight, world: World): void {
  if (!request.call.onSignal || request.stopFlush) return;
  const wait = paidUntil(request, world) + INTERVAL_MS - world.now();
  if (wait <= 0) flushProgress(request, world);
  else request.stopFlush = world.after(wait, () => flushProgress(request, world));
}

export function flushProgress(request: InFlight, world: World): void {
  request.stopFlush?.();
  request.stopFlush = undefined;
  const { progress } = request;
  if (!progress) return;
  request.progress = undefined;
  request.relayedAt = paidUntil(request, world) + INTERVAL_MS;
  request.call.onSignal?.({ type: 'progress', ...progress });
}

/** A server that has been silent may report several times at once. */
const paidUntil = ({ relayedAt }: InFlight, world: World): number => Math.max(relayedAt, world.now() - BURST_MS);
