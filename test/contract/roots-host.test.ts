// A host's roots are asked for when they may be others, one question at a time and not too often, and where the host listens.

import { describe, expect, it, vi } from 'vitest';
import type { Offers } from '../../src/roots/offers.ts';
import type { HostDoor } from '../../src/sessions/host.ts';
import { createHostRoots } from '../../src/sessions/host-roots.ts';
import { realWorld } from '../../src/world/world.ts';
import { eventually } from '../support/eventually.ts';

function stage({
  door = 'stdio' as HostDoor,
  capabilities = { roots: {} } as object,
  answerMs = 10_000,
  paceMs = 0,
  patienceMs = 2_000,
  complaints = [] as string[],
} = {}) {
  const kept: [session: string, offers: Offers | undefined][] = [];
  const heard: any[] = [];
  const send = (frame: Buffer) => void heard.push(JSON.parse(frame.toString()));
  const state = { isConnected: door !== 'http', isListening: false };
  const roots = createHostRoots({
    world: realWorld,
    roots: {
      async host(...given) {
        kept.push(given);
        return complaints;
      },
    },
    warn(frame) {
      if (state.isListening) send(frame);
      return state.isListening;
    },
    patienceMs,
    identity: { id: 'one', door, capabilities },
    connection: () => (state.isConnected ? send : undefined),
    answerMs,
    paceMs,
  });
  const line = { tell: send, answer: () => {} };
  const answer = (question: any, result: object) =>
    roots.answered(JSON.stringify(question?.id), { ok: true, result: Buffer.from(JSON.stringify(result)) });
  return { roots, kept, heard, line, answer, state, [Symbol.dispose]: () => roots.dispose() };
}
const LIST = { roots: [{ uri: 'file:///a', name: 'A' }] };
const KEPT = { roots: LIST.roots, isCut: false };

describe('a host with a connection', () => {
  it('is asked at once, and what it answers is kept with its session', () => {
    using s = stage();
    s.roots.due();
    expect(s.heard).toEqual([{ jsonrpc: '2.0', id: expect.any(String), method: 'roots/list', params: {} }]);
    expect(s.answer(s.heard[0], LIST)).toBe(true);
    expect(s.kept).toEqual([['one', KEPT]]);
    s.roots.requested(s.line);
    s.roots.attached();
    expect(s.heard).toHaveLength(1);
  });

  it('is asked when it comes back, if it was not there', () => {
    using s = stage();
    s.state.isConnected = false;
    s.roots.due();
    s.roots.requested(s.line);
    expect(s.heard).toEqual([]);
    s.state.isConnected = true;
    s.roots.attached();
    expect(s.heard).toHaveLength(1);
  });

  it('is asked once in a while only, however often it says that its roots have changed', () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    try {
      using s = stage({ paceMs: 1_000 });
      for (let count = 0; count < 50; count++) s.roots.due();
      expect(s.heard).toHaveLength(1);
      expect(vi.getTimerCount()).toBe(3); // until the next question, for the answer to this one, and for calls that wait for it
      vi.advanceTimersByTime(999);
      s.roots.due();
      expect(s.heard).toHaveLength(1);
      vi.advanceTimersByTime(1);
      expect(s.heard).toHaveLength(2);
      vi.advanceTimersByTime(5_000);
      expect(s.heard).toHaveLength(2);
    } finally {
      vi.useRealTimers();
    }
  });

  it('is believed in its newest answer only', () => {
    using s = stage();
    s.roots.due();
    s.roots.due();
    expect(new Set(s.heard.map(({ id }) => id)).size).toBe(2);
    expect(s.answer(s.heard[0], { roots: [] })).toBe(true);
    expect(s.kept).toEqual([]);
    s.answer(s.heard[1], LIST);
    s.answer(s.heard[1], { roots: [] });
    expect(s.kept).toEqual([['one', KEPT]]);
  });

  it('is told to forget a question that it does not answer in time', async () => {
    using s = stage({ answerMs: 20 });
    s.roots.due();
    await eventually(() => expect(s.heard).toHaveLength(2));
    expect(s.heard[1]).toMatchObject({ method: 'notifications/cancelled', params: { requestId: s.heard[0].id } });
    s.answer(s.heard[0], LIST);
    expect(s.kept).toEqual([]);
  });

  it('keeps what it had when it answers with an error or with no list', () => {
    using s = stage();
    s.roots.due();
    const error = Buffer.from('{"code":-32601,"message":"no"}');
    expect(s.roots.answered(JSON.stringify(s.heard[0].id), { ok: false, error })).toBe(true);
    s.roots.due();
    s.answer(s.heard[1], { roots: 'none' });
    expect(s.kept).toEqual([]);
  });
});

describe('a host over HTTP', () => {
  it('is asked on the line of its next request, once', () => {
    using s = stage({ door: 'http' });
    s.roots.requested(s.line);
    s.roots.due();
    expect(s.heard).toEqual([]);
    s.roots.requested(s.line);
    s.roots.requested(s.line);
    expect(s.heard).toHaveLength(1);
    s.answer(s.heard[0], LIST);
    expect(s.kept).toHaveLength(1);
  });
});

it('a host that has no roots is not asked', () => {
  for (const door of ['stdio', 'http'] as const) {
    using s = stage({ door, capabilities: { sampling: {} } });
    s.roots.due();
    s.roots.requested(s.line);
    expect(s.heard).toEqual([]);
  }
});

it('an answer to what another daemon asked is left to it, and after the end nothing counts', () => {
  using s = stage();
  expect(s.answer({ id: 'roots-of-another-1' }, LIST)).toBe(false);
  s.roots.due();
  s.roots.dispose();
  s.answer(s.heard[0], LIST);
  expect(s.kept).toEqual([]);
});

describe('calls that come while a host is asked', () => {
  const settled = async (promise: Promise<void> | undefined): Promise<boolean> =>
    Promise.race([promise?.then(() => true), new Promise<boolean>((resolve) => setImmediate(resolve, false))]) as any;

  it('wait until its answer is kept', async () => {
    using s = stage({ door: 'http' });
    s.roots.due();
    expect(s.roots.known()).toBeUndefined();
    s.roots.requested(s.line);
    const known = s.roots.known();
    expect(await settled(known)).toBe(false);
    s.answer(s.heard[0], LIST);
    expect([await settled(known), s.kept.length, s.roots.known()]).toEqual([true, 1, undefined]);
  });

  it('wait no longer than so long, and those that come later do not wait at all', async () => {
    using s = stage({ patienceMs: 20 });
    s.roots.due();
    await s.roots.known();
    expect([s.roots.known(), s.kept]).toEqual([undefined, []]);
    s.answer(s.heard[0], LIST);
    expect(s.kept).toHaveLength(1);
  });

  it('go on when the host has no list, or is gone', async () => {
    using s = stage();
    s.roots.due();
    const first = s.roots.known();
    s.answer(s.heard[0], {});
    s.roots.due();
    const second = s.roots.known();
    s.roots.dispose();
    expect([await settled(first), await settled(second)]).toEqual([true, true]);
  });
});

describe('a host whose roots are not given to servers', () => {
  const complaints = Array.from({ length: 7 }, (_, index) => `no. ${index}`);
  const warnings = ({ heard }: { heard: any[] }) => heard.filter(({ method }) => method === 'notifications/message');

  it('is told of some of them where it listens', async () => {
    using s = stage({ complaints });
    s.state.isListening = true;
    s.roots.due();
    s.answer(s.heard[0], LIST);
    await eventually(() => expect(warnings(s)).toHaveLength(5));
    expect(warnings(s)[0].params).toEqual({ level: 'warning', logger: 'troupe', data: 'no. 0' });
  });

  it('is told with its next request where it does not', async () => {
    using s = stage({ door: 'http', complaints: ['no'] });
    s.roots.due();
    s.roots.requested(s.line);
    s.answer(s.heard[0], LIST);
    await eventually(() => expect(s.roots.known()).toBeUndefined());
    expect(warnings(s)).toEqual([]);
    s.roots.requested(s.line);
    s.roots.requested(s.line);
    expect(warnings(s)).toHaveLength(1);
  });
});
