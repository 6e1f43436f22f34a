// The call that a task is. It has all the time that the task has, and so has what its server makes of it.

import type { Call, Door } from '../calls/call.ts';
import type { TaskRow } from '../store/rows.ts';

export function callOf(row: TaskRow, params: Buffer, leftMs: number): Omit<Call, 'settle'> {
  const { id, server, tool, principal, session, upstream } = row;
  return {
    requestId: id,
    task: id,
    server,
    method: 'tools/call',
    name: tool,
    params,
    principal,
    door: row.door as Door,
    isCancellable: true,
    timeoutMs: leftMs,
    maxTimeoutMs: leftMs,
    ttlMs: leftMs,
    ...(session && { holder: session }),
    ...(upstream && { upstream }),
  };
}
