// Progress on its way to the caller, at a pace a reader can take: a burst as it comes, then the newest of each interval,
// and always the last one.

import { now } from './deadlines.ts';
import type { InFlight } from './request.ts';

const INTERVAL_MS = 50;
const BURST_MS = 32 * INTERVAL_MS;

export function relayProgress(request: InFlight): void {
  if (!request.call.onSignal || request.progressTimer) return;
  const wait = paidUntil(request) + INTERVAL_MS - now();
  if (wait <= 0) flushProgress(request);
  else request.progressTimer = setTimeout(flushProgress, wait, request);
}

export function flushProgress(request: InFlight): void {
  clearTimeout(request.progressTimer);
  request.progressTimer = undefined;
  const { progress } = request;
  if (!progress) return;
  request.progress = undefined;
  request.relayedAt = paidUntil(request) + INTERVAL_MS;
  request.call.onSignal?.({ type: 'progress', ...progress });
}

/** Whoever has been silent may say several things at once. */
const paidUntil = ({ relayedAt }: InFlight): number => Math.max(relayedAt, now() - BURST_MS);
