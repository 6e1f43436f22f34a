// Who gets a process of a server that not everybody shares, and how many: no principal can take the room of the others,
// however many sessions it opens.

import { expect, test } from 'vitest';
import type { ServerConfig } from '../../src/config/schema.ts';
import { Instances } from '../../src/servers/instances.ts';
import { type Member, newMember } from '../../src/servers/member.ts';

function stage(share: 'session' | 'principal') {
  const members = new Map<string, Member>();
  const launch = (name: string, config: ServerConfig, onBehalfOf?: string): Member => {
    const parts = { lane: {}, logger: {}, suspects: {} } as Pick<Member, 'lane' | 'logger' | 'suspects'>;
    const member = newMember({ name, config, ...parts, onBehalfOf });
    members.set(name, Object.assign(member, { state: 'ready' }));
    return member;
  };
  const instances = new Instances({ members, launch, remove: (name) => void members.delete(name) });
  launch('files', { name: 'files', settings: { share } } as ServerConfig);
  const open = (principal: string, count: number, first = 0): Member[] =>
    Array.from(
      { length: count },
      (_, index) => instances.memberFor('files', principal, `${principal} ${first + index}`)!,
    );
  return { members, instances, open };
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
