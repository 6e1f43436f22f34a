// Every command of the README, in its order, as a reader would type them: `npm start` in one terminal, the rest in another.

import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MAIN, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { natsBinary } from '../support/nats.ts';
import { scratch } from '../support/scratch.ts';

const readme = await readFile(join(ROOT, 'README.md'), 'utf8');
const blocks = [...readme.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text]) => String(text).trim().split('\n'));
const [setup = [], ...rest] = blocks;
const commands = rest.flat().filter((line) => !line.startsWith('#'));
const home = await scratch();
const env = {
  ...{ PATH: `${join(home.path, 'bin')}:${process.env.PATH}`, HOME: home.path, NO_COLOR: '1' },
  TROUPE_NATS_SERVER: (await natsBinary()).path,
};
const inShell = (command: string) =>
  execa('bash', ['-c', command], { cwd: ROOT, env, extendEnv: false, reject: false, timeout: 60_000 });

let start: ReturnType<typeof npmStart>;
const npmStart = () =>
  execa('npm', ['start'], { cwd: ROOT, env, extendEnv: false, reject: false, all: true, detached: true });
let shown = '';

beforeAll(async () => {
  // The `nats` command is not ours to install: this one speaks to the same NATS with the same words. And npm takes longer to
  // start than troupe: this `npx` runs the command that the real one finds, as a test of its own shows.
  await mkdir(join(home.path, 'bin'));
  for (const [name, program] of Object.entries({ nats: NATS, npx: NPX })) {
    await writeFile(join(home.path, 'bin', name), program);
    await chmod(join(home.path, 'bin', name), 0o755);
  }
  start = npmStart();
  start.all.on('data', (chunk) => {
    shown += chunk;
  });
  await eventually(() => shown.includes('Ctrl-C stops all of it'), 90_000);
}, 100_000);

afterAll(async () => {
  if (start.exitCode === null) process.kill(-(start.pid as number), 'SIGINT');
  await start;
  await home[Symbol.asyncDispose]();
});

describe('the first screen', () => {
  it('has one sentence, a diagram, the two commands, one call and its reply', () => {
    const screen = readme.split('\n').slice(0, 38).join('\n');
    expect(screen).toMatch(/^# troupe\n\n\*\*[^\n]+\*\*\n/);
    expect(setup).toEqual([
      expect.stringMatching(/^npm ci && npm start /),
      expect.stringMatching(/^npm ci && npm test /),
    ]);
    expect(screen).toContain('npx troupe call everything echo message=hi');
    expect(screen).toContain('```\nEcho: hi\n```');
  });

  it('`npm start` tells what runs, how to call a tool and where to look, in 80 columns or little more', () => {
    for (const server of ['everything', 'filesystem', 'memory']) expect(shown).toMatch(new RegExp(`${server} +ready`));
    expect(shown).toContain('npx troupe call everything echo message=hi');
    expect(shown).toContain('npx troupe logs -f');
  });
});

describe('each command works as it is written', () => {
  const last = commands.filter((command) => /troupe (up|down|doctor)/.test(command));
  let id = ''; // each has a shell of its own
  it.each(commands.filter((command) => !last.includes(command)))('%s', async (command) => {
    const needsEnv = command.startsWith('nats ') ? 'eval "$(npx troupe env)" && ' : '';
    const isKept = command.startsWith('id=');
    const { exitCode, stdout, stderr } = await inShell(needsEnv + id + command + (isKept ? ' && echo "$id"' : ''));
    expect(exitCode, stderr).toBe(0);
    if (isKept) id = `id=${stdout.trim()}; `;
    const reply = replyAfter(command);
    if (reply) expect(stdout.trim()).toBe(reply);
  });

  it('`npx troupe` is the command of this checkout', async () => {
    const asWritten = { cwd: ROOT, env: { ...env, PATH: String(process.env.PATH) }, extendEnv: false };
    const { stdout } = await execa('npx', ['troupe', 'call', 'everything', 'echo', 'message=hi'], asWritten);
    expect(stdout).toBe('Echo: hi');
  });

  it('the example calls the same tool', async () => {
    const { stdout, stderr } = await inShell('eval "$(npx troupe env)" && node examples/call.mjs');
    expect(stdout, stderr).toBe('Echo: hi');
  });

  it('up says who runs, doctor finds nothing wrong, down ends it', async () => {
    expect(last.map((command) => command.split(' ')[2])).toEqual(['up', 'doctor', 'down']);
    for (const command of last) {
      const { exitCode, all } = await execa('bash', ['-c', command], {
        cwd: ROOT,
        env,
        extendEnv: false,
        reject: false,
        all: true,
      });
      expect(exitCode, `${command}: ${all}`).toBe(0);
    }
    await start;
    expect(existsSync(join(home.path, '.local/state/troupe/daemon.json'))).toBe(false);
  });
});

/** The block that follows a command of its own block is what it prints. */
function replyAfter(command: string): string | undefined {
  const at = readme.indexOf(`${command}\n\`\`\`\n\n\`\`\``);
  if (at < 0) return undefined;
  return /```(?:json)?\n([\s\S]*?)\n```/.exec(readme.slice(at + command.length + 4))?.[1];
}

const NPX = `#!/bin/sh
[ "$1" = troupe ] || { PATH='${process.env.PATH}'; exec npx "$@"; }
shift
exec "${process.execPath}" "${MAIN}" "$@"
`;

const NATS = `#!/usr/bin/env node
const { connect } = require(${JSON.stringify(join(ROOT, 'node_modules/nats'))});
const [verb, subject, body] = process.argv.slice(2);
const { host, username } = new URL(process.env.NATS_URL);
if (verb !== 'req') process.exit(2);
connect({ servers: host, token: username }).then(async (nats) => {
  console.log((await nats.request(subject, body, { timeout: 5000 })).string());
  await nats.close();
});
`;
