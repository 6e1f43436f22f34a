// Who gets a process of a server that not everybody shares, and how many: no principal can take the room of the others,
// however many sessions it opens.

import { expect, test } from 'vitest';
import type { ServerConfig } from '../../src/config/schema.ts';
import { Instances } from '../../src/servers/instances.ts';
import { type Member, newMember } from '../../src/servers/member.ts';
import { Suspects } from '../../src/servers/suspects.ts';
import { realWorld } from '../../src/world/world.ts';

function stage(share: 'session' | 'principal', most = 1_000) {
  const members = new Map<string, Member>();
  const clock = { ms: 0 };
  const launch = (name: string, config: ServerConfig, onBehalfOf?: string): Member => {
    const lane = { idleMs: 0, queued: 0, inFlight: 1 } as Member['lane'];
    const suspects = new Suspects(realWorld);
    const parts = { lane, logger: {}, suspects } as Pick<Member, 'lane' | 'logger' | 'suspects'>;
    const member = newMember({ name, config, ...parts, onBehalfOf });
    members.set(name, Object.assign(member, { state: 'ready' }));
    return member;
  };
  const remove = (name: string) => void members.delete(name);
  const instances = new Instances({ members, launch, remove, now: () => clock.ms, most });
  launch('files', { name: 'files', settings: { share } } as ServerConfig);
  const open = (principal: string, count: number, first = 0): Member[] =>
    Array.from(
      { length: count },
      (_, index) => instances.memberFor('files', principal, `${principal} ${first + index}`)!,
    );
  return { members, instances, open, clock };
}

test('one principal’s sessions get no more than half of the processes, and the other half is there for others', () => {
  const { instances, open } = stage('session');
  const mine = open('alice', 16);
  expect(new Set(mine).size).toBe(16);
  expect(instances.memberFor('files', 'alice', 'alice 0')).toBe(mine[0]);
  expect(() => open('alice', 1, 16)).toThrow(/server files already has 16 processes for you; end a session/);
  expect(new Set(open('bob', 16)).size).toBe(16);
  expect(() => open('carol', 1)).toThrow(/server files already has 32 processes;/);
});

test('an idle process makes room: one’s own where one has too many, anybody’s where there are too many', () => {
  const { members, open } = stage('session');
  const [first] = open('alice', 16);
  const [other] = open('bob', 16);
  other!.state = 'asleep';
  expect(() => open('alice', 1, 16)).toThrow(/for you/);
  first!.state = 'asleep';
  expect(open('alice', 1, 16)).toHaveLength(1);
  expect([members.has(first!.name), members.has(other!.name)]).toEqual([false, true]);
  expect(open('carol', 1)).toHaveLength(1);
  expect(members.has(other!.name)).toBe(false);
});

test('a session’s process is named by the session, works for its principal, and goes with it', () => {
  const { members, instances, open } = stage('session');
  const [one] = open('alice', 2);
  expect(one).toMatchObject({ name: expect.stringMatching(/^files@session-[0-9a-f]{12}$/), onBehalfOf: 'alice' });
  instances.release('alice 0');
  expect([members.has(one!.name), members.size]).toEqual([false, 2]);
});

test('where a principal’s sessions share, they share one process, and the owner’s is the first one', () => {
  const { members, instances, open } = stage('principal');
  expect(new Set(open('alice', 40)).size).toBe(1);
  expect(open('alice', 1)[0]).toMatchObject({ name: 'files@alice', principal: 'alice', onBehalfOf: 'alice' });
  expect(instances.memberFor('files', '_', 'x')).toBe(members.get('files'));
});

/** Nobody has used it for so long. */
const rest = (member: Member, idleMs: number) => Object.assign(member.lane, { idleMs, inFlight: 0 });

test('a caller without a process takes that of the one that has not used its own for longest, and never one in use', () => {
  const { members, instances, open } = stage('principal');
  const taken = Array.from({ length: 32 }, (_, index) => open(`made-up-${index}`, 1)[0]!);
  expect(() => open('honest', 1)).toThrow(/already has 32 processes/);
  rest(taken[3]!, 10);
  rest(taken[5]!, 500);
  rest(taken[7]!, 700);
  taken[7]!.subscriptions.add('uri', 'session');
  expect(instances.memberFor('files', 'honest')).toMatchObject({ name: 'files@honest' });
  expect(taken.filter(({ name }) => !members.has(name))).toEqual([taken[5]]);
  expect(instances.memberFor('files', 'honest')).toBe(members.get('files@honest'));
});

test('a session loses its process only for a principal that has none: to one with many at once, else after a minute', () => {
  const { members, open } = stage('session');
  const [one, two] = [open('alice', 16), open('bob', 15)];
  const [only] = open('carol', 1);
  for (const each of [...one, ...two]) rest(each, 1);
  rest(only!, 59_999);
  expect(() => open('bob', 1, 15)).toThrow(/already has 32 processes/);
  rest(two[4]!, 20);
  expect(open('dave', 1)).toHaveLength(1);
  expect([members.has(two[4]!.name), members.has(only!.name)]).toEqual([false, true]);
  for (const each of [...one, ...two]) rest(each, 0);
  expect(() => open('erin', 1)).toThrow(/already has 32 processes/);
  rest(only!, 60_000);
  expect(open('erin', 1)).toHaveLength(1);
  expect(members.has(only!.name)).toBe(false);
});

test('callers that were never seen before start only so many processes at once; known ones are not held up', () => {
  const { instances, open, clock } = stage('principal');
  const come = (name: string) => rest(open(name, 1)[0]!, 1);
  come('known');
  for (let count = 1; count < 64; count++) come(`made-up-${count}`);
  expect(() => come('one-too-many')).toThrow(
    /^server files has too many new callers at once; try again in some seconds$/,
  );
  expect(instances.knownFor('files', 'known')?.principal).toBe('_'); // its process was given up meanwhile
  come('known');
  clock.ms += 1_000;
  come('later');
  expect(() => come('one-too-many')).toThrow(/too many new callers/);
});

test('all servers together have no more processes than the machine has room for', () => {
  const { members, open } = stage('principal', 5);
  const [one] = [open('alice', 1), open('bob', 1), open('carol', 1), open('dave', 1)].flat();
  expect(() => open('erin', 1)).toThrow(/^troupe runs as many processes as this machine has descriptors for/);
  rest(one!, 1);
  expect(open('erin', 1)).toHaveLength(1);
  expect([members.size, members.has(one!.name)]).toEqual([5, false]);
});
