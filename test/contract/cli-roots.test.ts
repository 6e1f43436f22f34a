// `troupe roots` against the control socket: what it lists, and which path it sends.

import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { workplace } from '../support/cli.ts';

const ROOTS = {
  roots: [
    { uri: 'file:///home/me/projects', name: 'projects', from: 'config' },
    { uri: `file:///gone/${'deep/'.repeat(20)}\x1b[2J`, from: 'owner', problem: 'there is no such directory' },
  ],
};

test('roots are listed whole for a pipe, with who named them and what is wrong', async () => {
  await using place = workplace();
  await place.control(() => ({ result: JSON.stringify(ROOTS) }));
  const { code, stdout } = await place.run('roots');
  const lines = stdout.trimEnd().split('\n');
  expect(code).toBe(0);
  expect(lines[0]).toMatch(/^URI +NAME +FROM +PROBLEM$/);
  expect(lines[1]).toMatch(/^file:\/\/\/home\/me\/projects +projects +config$/);
  expect(lines[2]).toMatch(/^file:\/\/\/gone\/(deep\/){20}\S+ +owner +there is no such directory$/);
  expect(stdout).not.toContain('\x1b');
  expect(JSON.parse((await place.run('roots', '--json')).stdout)).toEqual(ROOTS);
});

test('without roots it says how to name one', async () => {
  await using place = workplace();
  await place.control(() => ({ result: '{"roots":[]}' }));
  expect(await place.run('roots')).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('roots add') });
});

test('a directory is meant from where the command runs', async () => {
  await using place = workplace();
  const here = realpathSync(place.directory);
  const asked = await place.control(({ params }) => ({ result: JSON.stringify({ uri: `file://${params.path}` }) }));
  expect(await place.run('roots', 'add', 'sub/../work', '--name', 'Work')).toMatchObject({
    ...{ code: 0, stdout: `servers are told of file://${join(here, 'work')}\n` },
  });
  expect(asked[0]).toMatchObject({ method: 'rootsAdd', params: { path: join(here, 'work'), name: 'Work' } });
  expect((await place.run('roots', 'add', '/', '--json')).stdout).toBe('{"uri":"file:///"}\n');
  expect(asked[1]?.params).toEqual({ path: '/' });
});

test('a directory is removed, or was never added', async () => {
  await using place = workplace();
  let wasThere = true;
  const asked = await place.control(() => ({ result: JSON.stringify({ uri: 'file:///a', wasThere }) }));
  expect((await place.run('roots', 'rm', '/a')).stdout).toBe('servers are no longer told of file:///a\n');
  expect(asked[0]).toMatchObject({ method: 'rootsRemove', params: { path: '/a' } });
  wasThere = false;
  const json = await place.run('roots', 'rm', '/a', '--json');
  expect([json.code, JSON.parse(json.stdout)]).toEqual([1, { uri: 'file:///a', wasThere }]);
});

test.each([
  ['file:///a%20b', 'owner', 'file:///a%20b was not added here; `troupe roots` says who named what'],
  ['file:///a%20b', 'host', 'file:///a%20b comes from a host and goes with it'],
])('rm takes %s as it is listed; of one that is not removed (%s) it says why, and fails', async (uri, from, why) => {
  await using place = workplace();
  const asked = await place.control(({ method }) => ({
    result: JSON.stringify(method === 'roots' ? { roots: [{ uri, from }] } : { uri, wasThere: false }),
  }));
  expect(await place.run('roots', 'rm', uri)).toEqual({ code: 1, stdout: '', stderr: `troupe: ${why}\n` });
  expect(asked[0]).toMatchObject({ method: 'rootsRemove', params: { path: uri } });
});

test.each([
  [['roots', 'list'], "roots knows add and rm, not 'list'"],
  [['roots', 'add'], 'roots add wants a directory'],
  [['roots', '--name', 'x'], '--name goes with roots add'],
])('%j is a usage error', async (words, sentence) => {
  await using place = workplace();
  expect(await place.run(...words)).toEqual({ code: 2, stdout: '', stderr: `troupe: ${sentence}\n` });
});

test('what the daemon refuses is its sentence', async () => {
  await using place = workplace();
  const data = { troupe: { code: 'invalid' } };
  await place.control(() => ({ error: { code: -32602, message: '/etc lies outside of what is allowed', data } }));
  expect(await place.run('roots', 'add', '/etc')).toMatchObject({
    ...{ code: 2, stderr: 'troupe: /etc lies outside of what is allowed\n' },
  });
});
