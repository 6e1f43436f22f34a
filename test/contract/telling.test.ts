// What a host hears of a call while it runs. Progress increases with each notification, although two speak of it: the server,
// and troupe, which says that the call waits for a person.

import { expect, it } from 'vitest';
import type { Signal } from '../../src/calls/call.ts';
import type { Era } from '../../src/protocol/eras.ts';
import { createTelling, nextProgress } from '../../src/sessions/telling.ts';

const ask = (id: string): Signal => ({ type: 'ask', id, kind: 'approval', expiresAt: 9, message: `answer ${id}` });
const progress = (value: number, more: object = {}): Signal => ({ type: 'progress', progress: value, ...more });

function host({ era = '2025-11-25' as Era, hasToken = true, level = 'info', hears = true } = {}) {
  const told: any[] = [];
  const tell = createTelling({
    era,
    token: hasToken ? '"t"' : undefined,
    isLoud: (each) => each !== 'debug' && level !== 'error',
    hearsNotices: () => hears && level !== 'error',
    tell: (frame) => {
      const { method, params } = JSON.parse(frame.toString());
      told.push(method === 'notifications/progress' ? params : { log: params });
    },
  });
  return { told, tell };
}

it('tells a host with a token by progress each time, and the log once for each question', () => {
  const { told, tell } = host();
  for (const id of ['a', 'a', 'b']) tell(ask(id));
  const log = (data: string) => ({ log: { level: 'notice', logger: 'troupe', data } });
  expect(told).toEqual([
    { progressToken: 't', progress: 0, message: 'answer a' },
    log('answer a'),
    { progressToken: 't', progress: expect.closeTo(0, 5), message: 'answer a' },
    { progressToken: 't', progress: expect.closeTo(0, 5), message: 'answer b' },
    log('answer b'),
  ]);
});

it('leaves the server’s own numbers alone, but for those that would not be more than what was told', () => {
  const { told, tell } = host({ hears: false });
  const said = [ask('a'), ask('a'), progress(0, { total: 3 }), progress(0.1), ask('b'), progress(1, { message: 'm' })];
  for (const signal of [...said, ask('b'), ask('b'), progress(1.000001), progress(2)]) tell(signal);
  const values = told.map((each) => each.progress);
  expect(values.every((value, at) => at === 0 || value > values[at - 1])).toBe(true);
  expect([values[3], values[5], values[9]]).toEqual([0.1, 1, 2]);
  expect(values.map((value) => Math.round(value * 1_000) / 1_000)).toEqual([0, 0, 0, 0.1, 0.1, 1, 1, 1, 1, 2]);
  expect([told[2].total, told[4].total, told[5].message, told[8].message]).toEqual([3, 3, 'm', undefined]);
});

it('goes up from every number, however large or small', () => {
  for (const last of [0, -1, 1e-300, 1, 1e9, 2 ** 53, -(2 ** 60), 1e300]) {
    expect(nextProgress(last)).toBeGreaterThan(last);
    expect(nextProgress(last, last)).toBeGreaterThan(last);
  }
  expect([nextProgress(undefined), nextProgress(undefined, -7), nextProgress(1, 5)]).toEqual([0, -7, 5]);
});

it('tells a host without a token by the log alone, one that takes no such line nothing, and the oldest hosts no message', () => {
  const untold = host({ hasToken: false });
  untold.tell(ask('a'));
  untold.tell(progress(1));
  expect(untold.told).toEqual([{ log: expect.objectContaining({ data: 'answer a' }) }]);
  const deaf = host({ hasToken: false, level: 'error' });
  deaf.tell(ask('a'));
  deaf.tell({ type: 'log', level: 'info', params: Buffer.from('{}') });
  expect(deaf.told).toEqual([]);
  const old = host({ era: '2024-11-05', hears: false });
  old.tell(ask('a'));
  expect(old.told).toEqual([{ progressToken: 't', progress: 0 }]);
});
