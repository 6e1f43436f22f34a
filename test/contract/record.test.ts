// What is left of a call: a record, and a line in the log of what failed, and of what went well for who debugs.

import pino from 'pino';
import { expect, it } from 'vitest';
import type { Call, Outcome } from '../../src/calls/call.ts';
import { outcomes } from '../../src/calls/outcomes.ts';
import { createRecorder } from '../../src/calls/record.ts';
import { newRequest, type Owner } from '../../src/calls/request.ts';
import type { AuditRecord, Store } from '../../src/store/store.ts';
import { createSecrets } from '../../src/telemetry/secrets.ts';

const CALL = { requestId: 'r', server: 's', method: 'tools/call', principal: 'p', door: 'nats' };
const LIMITS = { timeoutMs: 5, maxTimeoutMs: 5 };
const FAILURE = { code: 'lost', delivery: 'outcome unknown', message: 'it went away' } as const;

type Given = { readonly level?: string; readonly name?: string; readonly mask?: (text: string) => string };

function recorded(outcome: Outcome, { level = 'info', name = 'echo', mask = (text) => text }: Given) {
  const lines: { verdict: string }[] = [];
  const records: AuditRecord[] = [];
  const logger = pino({ level }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const store = { note: (record: AuditRecord) => void records.push(record) } as unknown as Store;
  const call = { ...CALL, name, params: Buffer.from('{}') } as unknown as Call;
  createRecorder(store, 'here', mask)(newRequest(call, {} as Owner, LIMITS, 0), outcome, logger);
  return { lines, records };
}

const result = (isError: boolean): Outcome => ({ ok: true, result: Buffer.from('{}'), isError });

it.each([
  ['info', result(false), [], ['ok']],
  ['debug', result(false), ['ok'], ['ok']],
  ['info', result(true), ['tool error'], ['tool error']],
  ['info', { ok: false, failure: FAILURE } as Outcome, ['lost'], ['lost']],
])('at %s', (level, outcome, logged, audited) => {
  const { lines, records } = recorded(outcome, { level });
  expect({ logged: lines.map(({ verdict }) => verdict), audited: records.map((each) => each.outcome) }).toEqual({
    logged,
    audited,
  });
});

it('has no part of a secret where a long name is cut', () => {
  const { learn, mask } = createSecrets();
  const secret = 'ghp_Zx81kQpLmN0aBcDeFgHiJkLmNoPqRsTuVwXyZ012';
  learn([secret]);
  for (const cut of [128, 1_024])
    for (let before = cut - secret.length + 1; before < cut; before++) {
      const name = `${'https://files.example/'.padEnd(before, 'a')}${secret}`;
      const call = { ...CALL, name, params: Buffer.from('{}') } as unknown as Call;
      const request = { ...newRequest(call, {} as Owner, LIMITS, 0), deadline: 5 };
      const outcome = outcomes('files').timeout(request, { mode: 'open', state: 'ready', why: '' }, 'not sent');
      const kept = JSON.stringify(recorded(outcome, { name, mask }));
      expect(kept).toContain('did not answer https://files.example/');
      expect(kept).not.toContain(secret.slice(0, 4));
    }
});
