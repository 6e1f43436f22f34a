// What is left of a call in the log: a line of what failed, and of what went well only for who debugs.

import pino from 'pino';
import { expect, it } from 'vitest';
import type { Call, Outcome } from '../../src/calls/call.ts';
import { createRecorder } from '../../src/calls/record.ts';
import { newRequest, type Owner } from '../../src/calls/request.ts';
import type { AuditRecord, Store } from '../../src/store/store.ts';

const CALL = { requestId: 'r', server: 's', method: 'tools/call', name: 'echo', principal: 'p', door: 'nats' };
const LIMITS = { timeoutMs: 5, maxTimeoutMs: 5 };
const FAILURE = { code: 'lost', delivery: 'outcome unknown', message: 'it went away' } as const;

function recordedAt(level: string, outcome: Outcome) {
  const lines: { verdict: string }[] = [];
  const records: AuditRecord[] = [];
  const logger = pino({ level }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const store = { note: (record: AuditRecord) => void records.push(record) } as unknown as Store;
  const call = { ...CALL, params: Buffer.from('{}') } as unknown as Call;
  createRecorder(store, 'here', (text) => text)(newRequest(call, {} as Owner, LIMITS, 0), outcome, logger);
  return { logged: lines.map(({ verdict }) => verdict), audited: records.map((each) => each.outcome) };
}

const result = (isError: boolean): Outcome => ({ ok: true, result: Buffer.from('{}'), isError });

it.each([
  ['info', result(false), [], ['ok']],
  ['debug', result(false), ['ok'], ['ok']],
  ['info', result(true), ['tool error'], ['tool error']],
  ['info', { ok: false, failure: FAILURE } as Outcome, ['lost'], ['lost']],
])('at %s', (level, outcome, logged, audited) => {
  expect(recordedAt(level, outcome)).toEqual({ logged, audited });
});
