// V8 reads a member quickly where it knows the shapes of the objects that have it. Of objects of which there are many, one for each
// server, tool or call, there must be few shapes, however they came to be (ADR 44).

import { setFlagsFromString } from 'node:v8';
import { expect, it } from 'vitest';
import { newEndpoint } from '../../src/bus/micro.ts';
import type { Call } from '../../src/calls/call.ts';
import { call } from '../../src/operations/calls.ts';
import { resource } from '../../src/sessions/targets.ts';
import { catalog, entriesOf, viewOf } from '../support/catalog.ts';

/** The table in which V8 looks up what it has seen holds many more; hundreds push each other out of it. */
const FEW = 10;
/** So many that V8 no longer makes them as it does at first. */
const MANY = 200;

/** V8 is asked in words of its own, which no parser of TypeScript knows. */
const haveSameShape = ((): ((one: object, other: object) => boolean) => {
  setFlagsFromString('--allow-natives-syntax');
  const ask = new Function('one', 'other', 'return %HaveSameMap(one, other)');
  ask({}, {}); // compiled while V8 knows the words
  setFlagsFromString('--no-allow-natives-syntax');
  return (one, other) => ask(one, other);
})();

function shapesOf(objects: readonly object[]): number {
  const found: object[] = [];
  for (const each of objects) if (!found.some((other) => haveSameShape(each, other))) found.push(each);
  return found.length;
}

const names = Array.from({ length: MANY }, (_, number) => `n${number}`);

it('tells when each object has a shape of its own', () => {
  expect(shapesOf(names.map((name) => ({ name })))).toBe(1);
  expect(shapesOf(names.map((name) => ({ [name]: 1 })))).toBe(MANY);
});

it('keeps the lists of all servers in few shapes', async () => {
  await using it = await catalog();
  const entries = await entriesOf('tools', [{ name: 'echo' }]);
  const failure = { code: 'rejected', delivery: 'failed', message: 'no' } as const;
  for (const name of names) {
    it.set(name, 'tools', entries);
    it.fail(name, 'prompts', { why: 'no', failure });
    if (name.endsWith('1')) it.expire(name);
  }
  const lists = names.flatMap((name) => [it.get(name, 'tools'), it.get(name, 'prompts'), it.get(name, 'resources')]);
  const reopened = await it.reopened();
  expect(shapesOf([...lists, ...names.map((name) => reopened.get(name, 'tools'))])).toBeLessThanOrEqual(FEW);
});

it('makes the targets of reads, the calls of the command line and the counts of tools in few shapes', async () => {
  await using it = await catalog();
  it.set('files', 'resources', await entriesOf('resources', [{ uri: 'file:///a', name: 'a' }]));
  const view = viewOf(it, ['files']);
  const params = Buffer.from('{"uri":"file:///a"}');
  expect(shapesOf(names.map(() => resource(view, params)))).toBeLessThanOrEqual(FEW);

  const calls: Call[] = [];
  const fleet = { submit: (each: Call) => calls.push(each) > 0, cancel: () => false };
  const wanted = { server: 's', method: 'tools/call', name: 'echo', params };
  for (const principal of names) void call({ fleet }, wanted, { principal, by: principal });
  expect(shapesOf(calls)).toBeLessThanOrEqual(FEW);

  const endpoints = names.map((tool) => newEndpoint(tool, tool, 'q', { tool }));
  expect(shapesOf([...endpoints, newEndpoint('call', 'call', 'q')])).toBeLessThanOrEqual(FEW);
});
