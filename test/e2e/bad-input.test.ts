// Bad input never crashes: each gets one clear sentence, a command a non-zero exit code, and nothing is lost.

import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { workplace } from '../support/cli.ts';
import { type Daemon, daemon, fixture, isAlive, MAIN } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { freePort, natsBinary } from '../support/nats.ts';
import { scratch } from '../support/scratch.ts';
import { INITIALIZE, startShim } from '../support/shim.ts';

describe('a configuration', () => {
  test('that is broken is refused with every complaint, each with file, line and column', async () => {
    await using place = workplace();
    const lines = ['{', '  "mcpServers": {', '    "one": { "comand": "node" },', '    "two": { "command": 7 },'];
    writeFileSync(place.config, [...lines, '    "three": { "command": "x", "args": "-v" }', '  }', '}'].join('\n'));
    for (const words of [['up'], ['up', '--detach']]) {
      const { code, stderr } = await place.run(...words);
      expect(code, words.join(' ')).not.toBe(0);
      for (const at of [`${place.config}:3:`, `${place.config}:4:`, `${place.config}:5:`]) expect(stderr).toContain(at);
      expect(stderr).toMatch(/:4:\d+: server "two": command must be a text, not a number/);
      expect(stderr).not.toMatch(/\n\s+at /); // no stack trace
    }
    expect(existsSync(join(place.directory, 'daemon.json'))).toBe(false);
  });

  test('that is no JSON, or is named and not there, is refused in one sentence', async () => {
    await using place = workplace();
    expect(await place.run('up')).toMatchObject({
      ...{ code: 2, stderr: `troupe: there is no configuration ${place.config}; correct the path\n` },
    });
    writeFileSync(place.config, '{ "mcpServers": { ');
    const { code, stderr } = await place.run('up');
    expect(code).toBe(2);
    expect(stderr).toMatch(/troupe\.json:1:\d+: /);
  });
});

describe('a running daemon', () => {
  let d: Daemon;
  beforeAll(async () => {
    d = await daemon({ servers: { echo: fixture('echo'), resources: fixture('resources') } });
  });
  afterAll(() => d[Symbol.asyncDispose]());

  test.each([
    [1, ['call', 'nobody', 'echo'], 'there is no server nobody; troupe ps lists them'],
    [1, ['call', 'echo', 'ecco'], 'server echo has no tool ecco; did you mean echo?'],
    [1, ['start', 'nobody'], 'there is no server nobody; troupe ps lists them'],
    [1, ['read', 'echo', 'memo://a'], 'server echo does not offer resources/read; it did not declare the capability'],
    [1, ['read', 'resources', 'http://x'], 'Resource not found: http://x'],
    [1, ['prompt', 'resources', 'great'], 'server resources has no prompt great; did you mean greet?'],
    [2, ['call', 'echo', 'echo', '--args', '{"message":'], 'JSON'],
    [2, ['call', 'echo', 'echo', 'nonsense'], 'key=value'],
    [2, ['call', 'echo', 'echo', '--timeout', 'soon'], '--timeout'],
    [2, ['call', 'echo', 'echo', '--nonsense'], '--nonsense'],
    [2, ['frobnicate'], 'frobnicate'],
  ] as const)('exits with %i on `troupe %j`', async (code, words, sentence) => {
    const { exitCode, stdout, stderr } = await d.cli(...words);
    expect({ exitCode, stdout }).toEqual({ exitCode: code, stdout: '' });
    expect(stderr).toContain(sentence);
    expect(stderr.split('\n')).toHaveLength(1);
  });

  test.each([
    [404, 'troupe.call.echo.ecco', '{}', 'server echo has no tool ecco; did you mean echo?'],
    [400, 'troupe.call.echo.echo', '{"message":', 'the body must be a JSON object: the arguments of a tool'],
    [400, 'troupe.call.echo.echo', '[1]', 'the body must be a JSON object: the arguments of a tool'],
    [400, 'troupe.call.echo.echo', '\xff\x00', 'the body must be a JSON object: the arguments of a tool'],
    [400, 'troupe.read.resources', '{"url":"x"}', 'send a URI, or {"uri": "…"}'],
    [400, 'troupe.list.echo.gadgets', '', 'ask for tools, resources, templates or prompts'],
    [400, 'troupe.call.echo.=61', '{}', 'the subject'],
    [404, 'troupe.read.echo', 'memo://a', 'server echo does not offer resources/read'],
    [404, 'troupe.prompt.resources.great', '{}', 'server resources has no prompt great; did you mean greet?'],
  ])('answers %i on %s %j', async (code, subject, body, sentence) => {
    const reply = await d.request(subject, body);
    expect(reply.code).toBe(code);
    expect(reply.data.message).toContain(sentence);
  });

  test('refuses headers it cannot read, and an unknown server at once', async () => {
    const bad = async (headers: Record<string, string>) =>
      (await d.request('troupe.call.echo.echo', {}, { headers })).error;
    expect(await bad({ 'Troupe-Timeout': 'soon' })).toBe('Troupe-Timeout must be a duration such as 30s or 5000');
    expect(await bad({ 'Troupe-Request-Id': 'a b' })).toBe('Troupe-Request-Id must be 1 to 64 letters, digits, - or _');
    await expect(d.request('troupe.call.nobody.echo', {}, { timeout: 5_000 })).rejects.toMatchObject({ code: '503' });
  });

  test('survives names of many megabytes, in sentences and in the audit', async () => {
    const shim = startShim(d.env, 'resources');
    shim.send(INITIALIZE);
    await shim.answer(0);
    const name = 'x'.repeat(34_000_000);
    shim.send({ id: 1, method: 'resources/read', params: { uri: `memo://${name}` } });
    const { error } = await shim.answer(1);
    expect(error.message.length).toBeLessThan(1_000);
    shim.child.stdin.end();
    expect(await shim.exit).toBe(0);
  }, 120_000);

  test('is as well as before', async () => {
    expect((await d.request('troupe.call.echo.echo', { message: 'hi' })).data.content[0].text).toBe('hi');
    expect((await d.status()).servers.map(({ state, restarts }) => [state, restarts])).toEqual([
      ...[
        ['ready', 0],
        ['ready', 0],
      ],
    ]);
    expect(await d.log()).not.toContain('a bug in troupe');
  });
});

describe('a state directory', () => {
  const refused = async (state: string) => {
    await using dir = await scratch();
    const config = join(dir.path, 'troupe.json');
    writeFileSync(config, '{"mcpServers":{}}');
    const env = { PATH: process.env.PATH ?? '', HOME: dir.path, TROUPE_STATE: state, TROUPE_CONFIG: config };
    for (const words of [['up'], ['up', '--detach'], ['status'], ['down']]) {
      const { exitCode, stderr, stdout } = await execa(process.execPath, [MAIN, ...words], {
        ...{ env, extendEnv: false, reject: false },
      });
      if (words[0] === 'down') expect({ exitCode, stdout }).toMatchObject({ exitCode: 0 });
      else expect(exitCode, words.join(' ')).toBeGreaterThan(0);
      if (words[0] === 'up') expect(stderr).toContain(state);
      expect(stderr).not.toMatch(/\n\s+at |fault of troupe/);
    }
  };

  test('that is a file, or lies below one, is refused', async () => {
    await using dir = await scratch();
    const file = join(dir.path, 'file');
    writeFileSync(file, 'precious');
    await refused(file);
    await refused(join(file, 'below'));
    expect(readFileSync(file, 'utf8')).toBe('precious');
  });

  test('that may not be written is refused', async () => {
    await using dir = await scratch();
    chmodSync(dir.path, 0o555);
    // Root may write anywhere but where nobody may.
    const closed = process.platform === 'linux' ? '/sys' : '/System';
    await refused(join(process.getuid?.() === 0 ? closed : dir.path, 'troupe-state'));
  });

  test('with a very long path works: the socket is elsewhere', async () => {
    await using dir = await scratch();
    const state = join(dir.path, 'x'.repeat(100), 'state');
    await using place = workplace({
      TROUPE_STATE: state,
      TROUPE_NATS_SERVER: (await natsBinary()).path,
      TMPDIR: dir.path,
    });
    writeFileSync(place.config, JSON.stringify({ mcpServers: { echo: fixture('echo') } }));
    try {
      expect((await place.run('up', '--detach')).code).toBe(0);
      expect(await place.run('call', 'echo', 'echo', 'message=far')).toMatchObject({ code: 0, stdout: 'far\n' });
    } finally {
      expect((await place.run('down')).code).toBe(0);
    }
  });
});

describe('the bus', () => {
  test('moves to another port when a stranger has taken its own', async () => {
    await using d = await daemon({ servers: { echo: fixture('echo') } });
    const before = new URL((await d.status()).bus.url);
    await (await d.nats()).close();
    await d.down();
    const stranger = createServer().listen(Number(before.port), '127.0.0.1');
    try {
      await d.start();
      const { url, state } = (await d.status()).bus;
      expect(state).toBe('online');
      expect(new URL(url).port).not.toBe(before.port);
      expect((await d.request('troupe.call.echo.echo', { message: 'moved' })).data.content[0].text).toBe('moved');
    } finally {
      stranger.close();
    }
  });

  test('says what keeps its nats-server from starting, in the words of up, and is not waited for long', async () => {
    await using dir = await scratch();
    const state = join(dir.path, 'state');
    await using place = workplace({ TROUPE_STATE: state, TROUPE_NATS_SERVER: (await natsBinary()).path });
    const token = join(state, 'nats/token');
    mkdirSync(join(token, '..'), { recursive: true, mode: 0o700 });
    symlinkSync('/dev/null', token);
    writeFileSync(place.config, JSON.stringify({ mcpServers: {} }));
    try {
      const { code, stdout } = await place.run('up', '--detach');
      expect(code).toBe(0);
      expect(stdout).toContain('bus offline');
      expect(stdout).toContain(`${token} is a symbolic link, not a file: move it away.`);
      // Three short waits between four attempts; the next one is ten seconds away.
      const attempts = readFileSync(join(state, 'logs/troupe.log'), 'utf8').match(/"msg":"broker waiting"/g) ?? [];
      expect(attempts.length).toBeLessThanOrEqual(4);
    } finally {
      await place.run('down');
    }
  });

  const nothing = async (): Promise<Record<string, string>> => ({
    ...{ TROUPE_NATS_SERVER: '', NATS_URL: '', TROUPE_NATS_MIRROR: `http://127.0.0.1:${await freePort()}` },
  });
  const isInstalled = ['/usr/sbin', '/usr/local/bin', '/opt/homebrew/bin'].some((folder) =>
    existsSync(`${folder}/nats-server`),
  );

  test.each([
    [
      'named and not there',
      async () => ({ TROUPE_NATS_SERVER: '/nonexistent/nats-server' }),
      /^TROUPE_NATS_SERVER names \/nonexistent\/nats-server, which does not run as a nats-server; correct or unset it\.$/,
    ],
    // A machine that has one in a usual place cannot be without.
    ...(isInstalled
      ? []
      : [
          [
            'neither here nor to be had',
            nothing,
            /^No nats-server could be fetched \(127\.0\.0\.1:\d+ cannot be reached; there is no apt-get here\); install one/,
          ] as const,
        ]),
  ] as const)(
    'without a nats-server (%s) the daemon runs, says so, and serves the command line',
    async (_, env, why) => {
      await using empty = await scratch();
      mkdirSync(join(empty.path, 'bin'));
      const more = { PATH: join(empty.path, 'bin'), XDG_CACHE_HOME: join(empty.path, 'cache'), ...(await env()) };
      await using d = await daemon({ servers: { echo: fixture('echo') }, env: more });
      const { bus } = await d.status();
      expect(bus).toMatchObject({ state: 'offline', lastError: expect.stringMatching(why) });
      expect((await d.cli('status')).stdout).toMatch(/^bus +offline/m);
      expect(await d.cli('call', 'echo', 'echo', 'message=hi')).toMatchObject({ exitCode: 0, stdout: 'hi' });
      const { exitCode, stdout } = await d.cli('env');
      expect([exitCode, stdout]).toEqual([
        ...[
          0,
          expect.stringMatching(/^TROUPE_HTTP=http:\S+\nexport TROUPE_HTTP\nTROUPE_TOKEN=\S+\nexport TROUPE_TOKEN$/),
        ],
      ]);
      const { pid } = await d.server('echo');
      expect(await d.down()).toBe(0);
      await eventually(async () => expect(await isAlive(pid as number)).toBe(false));
    },
  );
});
