// The moments in which it is not known whose question it is: before a server was ever seen asking, and after a caller gave
// up. Nothing is guessed then. What was learnt holds after the daemon was killed.

import { join } from 'node:path';
import { expect, it } from 'vitest';
import { askControl } from '../support/control.ts';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { taggedHost } from '../support/tagged-host.ts';

const TOKENS = { ann: 'token-of-ann-0123456789', ben: 'token-of-ben-0123456789' };
const HTTP = { http: { address: '127.0.0.1:0', tokens: TOKENS } };
type Waiting = { id: string; message: string; principal: string; waitsOn: string };

const asking = (troupe: object) => daemon({ servers: { asks: fixture('asks-tags', troupe) }, troupe: HTTP });
const hostOf = async (d: Daemon, name: string, who: keyof typeof TOKENS) =>
  taggedHost(await d.http(), 'asks', name, { token: TOKENS[who] });
const names = async (d: Daemon) => (await d.status()).servers.map(({ name }) => name);
const control = <Answer>(d: Daemon, method: string, params: object = {}) =>
  askControl<Answer>(join(d.state, 'control.sock'), method, params);

it('two principals in one process that nobody knew to ask: one is refused, the other is asked itself', async () => {
  await using d = await asking({ share: 'all' });
  const [ann, ben] = [await hostOf(d, 'a1', 'ann'), await hostOf(d, 'b1', 'ben')];
  const answers = await Promise.all([ann.ask('x', 200), ben.ask('x', 200)]);
  expect(new Set(answers.map(({ pid }) => pid)).size).toBe(1);
  expect(answers.map(({ action }) => action).sort()).toEqual(['accept', 'cancel']);
  for (const { tag, action, said } of answers)
    expect(said).toBe(action === 'accept' ? `${tag.slice(0, 2)} answers ${tag}` : undefined);
  expect([ann.strange, ben.strange, [...ann.asked, ...ben.asked].length]).toEqual([[], [], 1]);
  ann.close();
  ben.close();
}, 60_000);

it('waits until the other’s call has ended, and lets further calls go elsewhere meanwhile', async () => {
  await using d = await asking({ share: 'all' });
  const [ann, ben] = [await hostOf(d, 'a1', 'ann'), await hostOf(d, 'b1', 'ben')];
  const order: string[] = [];
  const work = ben
    .request('tools/call', { name: 'work', arguments: { tag: 'w', ms: 1_500 } })
    .then(() => order.push('w'));
  const first = ann.ask('x', 100).then((answer) => {
    order.push('x');
    return answer;
  });
  await eventually(async () => expect(await names(d)).toEqual(['asks']));
  await eventually(async () => expect((await d.server('asks')).inFlight).toBe(2));
  await eventually(async () => expect((await d.log()).includes('it asks questions')).toBe(true));
  const second = await ben.ask('y');
  expect(second.said).toBe('b1 answers b1 y');
  const [answer] = await Promise.all([first, work]);
  expect([answer.said, order]).toEqual(['a1 answers a1 x', ['w', 'x']]);
  expect(second.pid).not.toBe(answer.pid);
  expect([ann.strange, ben.strange]).toEqual([[], []]);
  ann.close();
  ben.close();
}, 60_000);

it('two sessions of one principal: no host is asked, the principal’s inbox is, and the answer ends the call', async () => {
  await using d = await asking({});
  const hosts = [await hostOf(d, 'a1', 'ann'), await hostOf(d, 'a2', 'ann')];
  const calls = hosts.map((host) => host.ask('x', 200));
  const open = await eventually(async () => {
    const { asks } = await control<{ asks: Waiting[] }>(d, 'inbox');
    expect(asks).toHaveLength(2);
    return asks;
  }, 10_000);
  expect(open.map(({ principal }) => principal)).toEqual(['ann', 'ann']);
  for (const { id, message } of open) {
    const content = { said: `the inbox answers ${message}` };
    expect(await control(d, 'answer', { id, action: 'accept', content })).toMatchObject({ outcome: 'accepted' });
  }
  for (const { tag, said } of await Promise.all(calls)) expect(said).toBe(`the inbox answers ${tag}`);
  expect(hosts.map(({ asked }) => asked)).toEqual([[], []]);
  // From now on it is known, and each asks alone.
  const again = await Promise.all(hosts.map((host) => host.ask('y', 100)));
  expect(again.map(({ said }) => said)).toEqual(['a1 answers a1 y', 'a2 answers a2 y']);
  for (const host of hosts) host.close();
}, 60_000);

it('is known after the daemon was killed, and forgotten when the definition changes', async () => {
  await using d = await asking({ share: 'all' });
  const teacher = await hostOf(d, 'a0', 'ann');
  await teacher.ask('x');
  await eventually(async () => expect((await d.log()).includes('it asks questions')).toBe(true));
  await d.kill();
  await d.start();
  const both = async () => {
    const [ann, ben] = [await hostOf(d, 'a1', 'ann'), await hostOf(d, 'b1', 'ben')];
    const answers = await Promise.all([ann.ask('y', 200), ben.ask('y', 200)]);
    ann.close();
    ben.close();
    return answers.map(({ said }) => said);
  };
  expect(await both()).toEqual(['a1 answers a1 y', 'b1 answers b1 y']);
  expect(await names(d)).toEqual(['asks', 'asks~2']);
  await d.write({ asks: fixture('asks-tags', { share: 'all' }, { OTHER: '1' }) });
  await eventually(async () => expect(await names(d)).toEqual(['asks']), 15_000);
  await d.until('asks', 'ready');
  expect((await both()).filter((said) => said !== undefined)).toHaveLength(1);
  teacher.close();
}, 90_000);

it('a stranger’s given-up call that still asks asks nobody, and the next caller is asked its own question', async () => {
  await using d = await asking({ share: 'all', interactive: true, pool: 1 });
  const [ann, ben] = [await hostOf(d, 'a1', 'ann'), await hostOf(d, 'b1', 'ben')];
  const { pid } = await ann.ask('x');
  const given = ann.ask('y', 300);
  await eventually(async () => expect((await d.server('asks')).inFlight).toBe(1));
  ann.cancel();
  const answer = await ben.ask('z', 600);
  expect([answer.said, answer.pid === pid]).toEqual(['b1 answers b1 z', false]);
  expect([ben.strange, ann.asked, ben.asked]).toEqual([[], ['a1 x'], ['b1 z']]);
  void given; // a cancelled request is not answered
  ann.close();
  ben.close();
}, 60_000);
