// `troupe install` on a home of its own: what it shows, writes, keeps and refuses; and a host that uses what it wrote.

import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { execa } from 'execa';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Daemon, daemon, fixture, MAIN } from '../support/daemon.ts';
import { sdkHost } from '../support/sdk-host.ts';

let d: Daemon;
let home: string;
let homes = 0;

beforeAll(async () => {
  const servers = { echo: fixture('echo') };
  d = await daemon({ servers, troupe: { http: { address: '127.0.0.1:0' }, profiles: { few: { servers: ['echo'] } } } });
});
afterAll(() => d?.[Symbol.asyncDispose]());
beforeEach(async () => {
  home = join(d.dir, `home-${++homes}`);
  await mkdir(home);
});

const install = (...words: string[]) =>
  execa(process.execPath, [MAIN, 'install', ...words], {
    ...{ env: { ...d.env, HOME: home }, extendEnv: false, reject: false, timeout: 60_000 },
  });
const cursor = () => join(home, '.cursor', 'mcp.json');
const read = async (path: string) => JSON.parse(await readFile(path, 'utf8'));
const backups = async (path: string) =>
  (await readdir(dirname(path)))
    .filter((each) => each.includes('.troupe-backup-'))
    .map((each) => join(dirname(path), each));

describe('the command that is written', () => {
  it('is one that a host can start as it stands, and reaches this daemon', async () => {
    expect((await install('cursor', '--yes')).exitCode).toBe(0);
    const { command, args, env } = (await read(cursor())).mcpServers.troupe;
    expect([command, args]).toEqual([process.execPath, [MAIN, 'connect']]);
    await using host = await sdkHost(
      'v1',
      new StdioClientTransport({ command, args, env: { ...env, PATH: d.env.PATH } }),
    );
    expect((await host.call('echo__echo', { message: 'hi' })).content[0].text).toBe('hi');
  });

  it('names the server or profile that was asked for, and another entry', async () => {
    await install('cursor', '--yes', '--server', 'echo', '--name', 'only-echo');
    await install('cursor', '--yes', '--server', '@few', '--name', 'few');
    const { mcpServers } = await read(cursor());
    expect(Object.keys(mcpServers)).toEqual(['only-echo', 'few']);
    expect(mcpServers['only-echo'].args).toEqual([MAIN, 'connect', 'echo']);
    expect(mcpServers.few.args).toEqual([MAIN, 'connect', '@few']);
  });

  it('is the address with --url', async () => {
    const { stdout } = await install('vscode', '--yes', '--json', '--url', '--server', 'echo');
    const { servers } = await read(JSON.parse(stdout).file);
    expect(servers.troupe).toEqual({ type: 'http', url: `${await d.http()}/mcp/echo` });
  });
});

describe('the file', () => {
  const BEFORE = '{\n    "mcpServers": {\n        "mine": {"command": "x"} // keep\n    }\n}\n';

  it.each(['claude-code', 'claude-desktop', 'cursor', 'vscode', 'codex'])(
    'of %s is made where there is none',
    async (host) => {
      const { exitCode, stdout } = await install(host, '--yes', '--json');
      const { file, changed, backup } = JSON.parse(stdout);
      expect([exitCode, changed, backup, file.startsWith(home)]).toEqual([0, true, null, true]);
      expect((await stat(file)).mode & 0o777).toBe(0o600);
      const again = JSON.parse((await install(host, '--yes', '--json')).stdout);
      expect(again).toMatchObject({ file, changed: false });
    },
  );

  it('is shown as a difference first, and only that with --print', async () => {
    await mkdir(dirname(cursor()));
    await writeFile(cursor(), BEFORE);
    const { stdout, exitCode } = await install('cursor', '--print');
    expect(exitCode).toBe(0);
    expect(stdout).toContain(`--- ${cursor()}\n+++ ${cursor()}\n@@ -1,5 +1,`);
    expect(stdout).toMatch(/^-.*"mine".*\n\+.*"mine"[\s\S]*^\+ {8}"troupe": \{$/m);
    expect(await readFile(cursor(), 'utf8')).toBe(BEFORE);
  });

  it('keeps its mode and its link, and what it said before lies beside it', async () => {
    await mkdir(dirname(cursor()));
    const real = join(home, 'dotfiles.json');
    await writeFile(real, BEFORE);
    await chmod(real, 0o640);
    await symlink(real, cursor());
    await install('cursor', '--yes');
    expect((await stat(real)).mode & 0o777).toBe(0o640);
    expect(await readFile(real, 'utf8')).toContain('"troupe"');
    const [backup] = await backups(real);
    expect(await readFile(backup as string, 'utf8')).toBe(BEFORE);
    expect((await install('cursor', '--yes')).stdout).toContain('already installed');
    expect(await backups(real)).toHaveLength(1);
  });
});

describe('it refuses with a sentence', () => {
  it('to write without a terminal to ask on', async () => {
    const { exitCode, stderr } = await install('cursor');
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('--yes')]);
    expect(await readdir(home)).toEqual([]);
  });

  it('a broken file, which stays as it is', async () => {
    await writeFile(join(home, '.claude.json'), '{"mcpServers": {');
    const { exitCode, stderr } = await install('claude-code', '--yes');
    expect([exitCode, stderr]).toEqual([2, expect.stringMatching(/\.claude\.json:1:\d+.*brace.*nothing was changed/)]);
    expect(await readFile(join(home, '.claude.json'), 'utf8')).toBe('{"mcpServers": {');
  });

  it.each([
    [['emacs'], 2, /claude-code, claude-desktop, cursor, vscode, codex/],
    [['cursor', '--server', 'nobody', '--yes'], 1, /there is no server nobody in .*troupe\.json/],
    [['cursor', '--server', '@nobody', '--yes'], 1, /there is no profile @nobody/],
    [['cursor', '--name', 'a b', '--yes'], 2, /--name wants/],
    [['claude-desktop', '--url', '--yes'], 2, /leave out --url/],
  ])('%j', async (words, code, why) => {
    const { exitCode, stderr } = await install(...words);
    expect([exitCode, stderr]).toEqual([code, expect.stringMatching(why)]);
    expect(await readdir(home)).toEqual([]);
  });
});
