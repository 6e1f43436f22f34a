// A process in its cage is the program that was asked for and nothing else: its environment, its errors, its pid. What it starts
// can be told from all other processes, and ends with it.

import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { openCage } from '../../src/servers/stdio/cage.ts';
import { type Child, spawnChild } from '../../src/servers/stdio/child.ts';
import { findCommand } from '../../src/servers/stdio/command.ts';
import { newMark } from '../../src/servers/stdio/mark.ts';
import { isServers } from '../../src/servers/stdio/strays.ts';
import { endStrays } from '../../src/servers/stdio/sweep.ts';
import { isAlive } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { scratch } from '../support/scratch.ts';

const mark = await newMark('test');
const ODD: [string, Record<string, string>][] = [['with a variable that a shell drops', { 'X-API-KEY': 'x' }]];
const hasPrlimit = findCommand('prlimit', undefined, '/usr/bin:/bin') !== undefined;
const PATH = process.env.PATH ?? '';
/** A family of which no process carries a mark. */
const NOBODY = 'nobody:';

type Run = { readonly out: string; readonly why: string; readonly isMissing: boolean };

function start(command: string, args: string[], given: Record<string, string> = {}, own: NodeJS.ProcessEnv = {}) {
  let child: Child | undefined;
  let out = '';
  const ended = new Promise<Run>((resolve) => {
    child = spawnChild({
      ...{ command, args, cwd: undefined, env: { PATH, ...given }, stdinMs: 10, termMs: 10 },
      cage: openCage(mark, 'server', own),
      onOutput: (chunk) => {
        out += chunk;
      },
      onErrorOutput: () => {},
      onSpawn: () => {},
      onExit: (why, end) => resolve({ out, why, isMissing: end === 'missing' }),
    });
  });
  return { child: child as Child, ended, said: () => out };
}

describe.runIf(process.platform === 'linux').each([
  ['in a cgroup where there may be one', {}],
  ['without a cgroup', { TROUPE_CGROUP: 'off' }],
])('%s', (_, own) => {
  afterAll(() => endStrays(mark));

  test('the program sees the environment that it was given, whatever its names, and nothing more', async () => {
    const script = 'process.stdout.write(JSON.stringify(process.env))';
    const plain = { A: '1', QUOTED: 'a "b" $c \'d\'', EMPTY: '' };
    for (const env of [plain, { ...plain, 'WITH-DASH': 'x', 'npm_config_@a:b': 'y' }]) {
      const { out } = await start(process.execPath, ['-e', script], env, own).ended;
      const { _, ...seen } = JSON.parse(out); // bash, where it is the shell, tells by `_` what it has run
      expect(seen).toEqual({ PATH, ...env });
    }
  });

  test('a program that cannot be run is the same sentence as ever', async () => {
    await using dir = await scratch();
    const at = (name: string) => join(dir.path, name);
    await writeFile(at('plain'), '');
    await writeFile(at('orphaned'), '#!/no/such/interpreter\n');
    await chmod(at('orphaned'), 0o755);
    const ends = (command: string) => start(command, [], {}, own).ended;
    expect(await ends('no-such-command')).toMatchObject({
      why: 'command no-such-command was not found; install it or give its full path',
      isMissing: true,
    });
    expect(await ends(at('plain'))).toMatchObject({ why: `may not run ${at('plain')}; make it executable` });
    expect(await ends(at('orphaned'))).toMatchObject({
      why: expect.stringContaining('was not found'),
      isMissing: true,
    });
    expect(await start('/bin/sh', ['-c', 'exit 127'], {}, own).ended).toMatchObject({ why: 'exited with code 127' });
  });

  test.each<[string, Record<string, string>]>([
    ['with a plain environment', {}],
    // Without prlimit it goes unmarked: docs/ARCHITECTURE.md says so.
    ...(hasPrlimit ? ODD : []),
  ])('who was started by a server %s is known, and ends with it', async (_, env) => {
    const script = 'env -i setsid sleep 100000 </dev/null >/dev/null 2>&1 & echo $!; read line';
    const { child, ended, said } = start('/bin/sh', ['-c', script], env, own);
    const pid = await eventually(() => Number(/^\d+\n/.exec(said())?.[0]) || false);
    expect([await isServers(pid as number, mark, NOBODY), await isServers(child.pid as number, mark, NOBODY)]).toEqual([
      true,
      true,
    ]);
    expect(await isServers(process.pid, mark, NOBODY)).toBe(false);
    child.close();
    await ended;
    await eventually(async () => expect(await isAlive(pid as number)).toBe(false));
  });
});
