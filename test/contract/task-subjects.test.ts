import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createEvents } from '../../src/bus/events.ts';
import { outbox } from '../../src/bus/outbox.ts';
import { type Address, subjects } from '../../src/bus/subjects.ts';
import type { TaskView } from '../../src/calls/call.ts';
import { openStore } from '../../src/store/store.ts';
import { eventually } from '../support/eventually.ts';
import { natsServer } from '../support/nats.ts';
import { scratch } from '../support/scratch.ts';

const { parse, ...build } = subjects('troupe');
const caller = fc.string({ unit: 'binary', minLength: 1, maxLength: 30 }).filter((name) => name !== '_');
const address: fc.Arbitrary<Address> = fc.oneof(
  fc.constant({}),
  fc.record({ caller }),
  fc.record({ node: fc.string({ minLength: 1, maxLength: 20 }) }),
);
const id = fc.stringMatching(/^[A-Za-z0-9_-]{22}$/);

test('what is asked of tasks is parsed into what it was built from, and matched by one pattern', () => {
  fc.assert(
    fc.property(id, address, (task, to) => {
      const { caller = '_', node } = { caller: '_', ...to } as { caller?: string; node?: string };
      const who = { caller, ...(node !== undefined && { node }) };
      const asked = (['get', 'result', 'cancel'] as const).map((verb) => [build.task(verb, task, to), verb] as const);
      for (const [subject, verb] of asked) expect(build.parseTask(subject)).toEqual({ ...who, verb, id: task });
      expect(build.parseTask(build.taskList(to))).toEqual({ ...who, verb: 'list', id: '' });
      const patterns = build.taskPatterns(node ?? 'host-1', 'f1');
      for (const subject of [...asked.map(([each]) => each), build.taskList(to)]) {
        expect(legal(subject)).toBe(true);
        expect([parse(subject), build.parseAsk(subject), build.parseRpc(subject)]).toEqual([
          undefined,
          undefined,
          undefined,
        ]);
        expect(patterns.filter((pattern) => matches(pattern.subject, subject))).toMatchObject([{ queue: 'troupe-f1' }]);
      }
    }),
  );
});

test.each([
  'troupe.task',
  'troupe.task.get',
  'troupe.task.get.a.b',
  'troupe.task.get.a=20b',
  'troupe.task.list.a',
  'troupe.task.drop.a',
  'troupe.as._.task.list',
  'troupe.as.alice.task',
  'troupe.ev.task.a.completed',
  'other.task.list',
])('nothing is asked of tasks on %s', (subject) => expect(build.parseTask(subject)).toBeUndefined());

test('each status is told where only its own caller listens', () => {
  expect(build.taskStatus('x1', 'completed', '_')).toBe('troupe.ev.task.x1.completed');
  fc.assert(
    fc.property(caller, caller, id, (mine, other, task) => {
      const [subject, pattern] = [build.taskStatus(task, 'failed', mine), build.taskStatus('*', '*', other)];
      expect(legal(subject)).toBe(true);
      expect(matches(pattern, subject)).toBe(mine === other);
      expect(matches(build.taskStatus('*', '*'), subject)).toBe(false);
    }),
  );
});

test('a status waits on the disk for a bus, in its order, and tells nothing but the task', async () => {
  await using directory = await scratch();
  await using nats = await natsServer();
  const store = await openStore(directory.path, { ballastBytes: 0 });
  try {
    const troubles: unknown[] = [];
    const events = createEvents(subjects('troupe'), outbox(store), (why) => void troubles.push(why));
    const at = new Date(0).toISOString();
    const task: TaskView = {
      ...{ taskId: 'x1', status: 'working', createdAt: at, lastUpdatedAt: at, ttl: 1, pollInterval: 1 },
      ...{ server: 'gh', tool: 'search', principal: 'alice', phase: 'dispatching', attempt: 1 },
      progress: { progress: 1, total: 2 },
    };
    const ended: TaskView = { ...task, status: 'failed', statusMessage: 'why', phase: 'ended' };
    events.taskStatus(task);
    events.taskStatus(Object.assign({ params: 'hunter2', result: 'hunter2' }, ended));
    await eventually(() => expect(store.get('outboxDepth')).toEqual({ depth: 2 }));
    const nc = await nats.connect();
    const heard: unknown[] = [];
    nc.subscribe('troupe.>', {
      callback: (_, msg) => void heard.push([msg.subject, msg.json(), msg.headers?.has('Nats-Msg-Id')]),
    });
    await nc.flush();
    events.online(nc);
    await eventually(() =>
      expect(heard).toEqual([
        ['troupe.as.alice.ev.task.x1.working', task, true],
        ['troupe.as.alice.ev.task.x1.failed', ended, true],
      ]),
    );
    await events.close();
    expect(troubles).toEqual([]);
  } finally {
    await store.close();
  }
});

const legal = (subject: string) =>
  subject.split('.').every((token) => /^[\x21-\x7e]+$/.test(token) && !/[*>]/.test(token));

function matches(pattern: string, subject: string): boolean {
  const [want, have] = [pattern.split('.'), subject.split('.')];
  return want.length === have.length && want.every((token, i) => token === '*' || token === have[i]);
}
