// The other verbs: what they print, that tables fit, and what each says when there is no daemon or no such verb.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Asked, type Reply, workplace } from '../support/cli.ts';

const server = (name: string, more: object = {}) => ({
  name,
  state: 'ready',
  since: Date.now() - 65_000,
  pid: 4242,
  restarts: 0,
  inFlight: 0,
  lastError: null,
  tools: 13,
  ...more,
});
const STATUS = {
  daemon: {
    ...{ pid: 1, version: '0.1.0', startedAt: Date.now() - 65_000, uptimeMs: 65_000, state: 'running' },
    ...{ stateDir: '/s', config: '/c/troupe.json', logFile: '/s/logs/troupe.log', memoryBytes: 60 * 2 ** 20 },
  },
  bus: { state: 'online', url: 'nats://127.0.0.1:4222', managed: true, pid: 77, outbox: 0 },
  store: { state: 'ready', message: '' },
  plugins: [],
  servers: [
    server('everything'),
    server('a-server-with-a-very-long-name-indeed-longer-than-most', {
      state: 'failed',
      lastError: `it died\n${'again and '.repeat(20)}`,
    }),
  ],
};
const status = (): Reply => ({ result: JSON.stringify(STATUS) });
const widest = (printed: string): number => Math.max(...printed.split('\n').map((line) => [...line].length));

test.each(['status', 'ps', 'env', 'tools', 'call a b', 'read a b', 'start a', 'stop a', 'restart a'])(
  '%s without a daemon ends with 4 and says how to start one',
  async (words) => {
    await using place = workplace();
    const { code, stdout, stderr } = await place.run(...words.split(' '));
    expect({ code, stdout, stderr }).toEqual({
      code: 4,
      stdout: '',
      stderr: 'troupe: troupe is not running; start it with `troupe up`\n',
    });
  },
);

test.each([
  ['statsu', /Did you mean status/],
  ['call a', /missing required argument 'tool'/],
  ['status --nope', /unknown option '--nope'/],
  ['call a b --timeout soon', /--timeout wants a time/],
  ['call a b word', /write key=value/],
  ['up --http everywhere', /--http wants HOST:PORT, a port, or off, not 'everywhere'/],
  ['ps --instance No', /the name of an instance must match .*; call it "no"/],
  ['add web npx --url https://h', /a server behind a url has no command/],
  ['add web npx --header A=b', /--header and --type go with --url/],
  ['add web', /troupe add web --url <url>/],
])('%s is a usage error: 2 and one sentence', async (words, sentence) => {
  await using place = workplace();
  await place.control(() => ({ result: '{"items":[],"missing":[]}' }));
  const { code, stderr } = await place.run(...words.split(' '));
  expect(code).toBe(2);
  expect(stderr).toMatch(sentence);
  expect(stderr.trimEnd().split('\n')).toHaveLength(1);
  const asJson = await place.run(...words.split(' '), '--json');
  expect(JSON.parse(asJson.stderr).error).toMatchObject({ code: 'invalid', message: expect.stringMatching(sentence) });
});

test('the help names every verb and fits the terminal', async () => {
  await using place = workplace();
  const { code, stdout } = await place.run('--help');
  expect(code).toBe(0);
  for (const verb of ['up', 'down', 'doctor', 'call', 'complete', 'import', 'connect', 'install', 'login', 'logout'])
    expect(stdout).toMatch(new RegExp(`^  ${verb} `, 'm'));
  expect(widest(stdout)).toBeLessThanOrEqual(80);
});

test('status and ps show every server in 80 columns, and their JSON is what the daemon said', async () => {
  await using place = workplace();
  await place.control(status);
  const ps = await place.run('ps');
  expect(ps.stdout).toMatch(/^everything +ready +1m +4242 +0 +0$/m);
  const [table = '', trouble = ''] = ps.stdout.split('\n\n');
  expect(table.split('\n')).toHaveLength(3);
  expect(trouble.replaceAll(/\s+/g, ' ')).toContain(`most is failed: it died ${'again and '.repeat(20)}`.trimEnd());
  expect(widest(ps.stdout)).toBeLessThanOrEqual(80);
  const { stdout } = await place.run('status');
  expect(stdout).toMatch(/online +nats:\/\/127\.0\.0\.1:4222 +\(our own nats-server, pid 77\)/);
  expect(stdout).not.toContain('\x1b');
  expect(JSON.parse((await place.run('status', '--json')).stdout)).toEqual(STATUS);
});

test('env prints one shell line, quoted only where a shell needs it', async () => {
  await using place = workplace();
  let url = 'nats://s3cret@127.0.0.1:4222';
  await place.control(() => ({ result: JSON.stringify({ NATS_URL: url }) }));
  expect((await place.run('env')).stdout).toBe(`NATS_URL=${url}\nexport NATS_URL\n`);
  url = "nats://a'b@h";
  expect((await place.run('env')).stdout).toBe(`NATS_URL='nats://a'\\''b@h'\nexport NATS_URL\n`);
  expect(JSON.parse((await place.run('env', '--json')).stdout)).toEqual({ NATS_URL: url });
});

test('tools shows arguments and says whose tools are missing', async () => {
  await using place = workplace();
  const item = {
    name: 'add',
    description: `Adds. ${'More words. '.repeat(20)}`,
    inputSchema: { properties: { a: {}, b: {} }, required: ['a'] },
  };
  await place.control(({ params }: Asked) => ({
    result: JSON.stringify({
      items: params.server === 'gone' ? [] : [{ server: 'demo', item }],
      missing: [{ server: 'gone', state: 'failed', why: 'it died' }],
    }),
  }));
  const { code, stdout, stderr } = await place.run('tools');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^demo +add +a \[b\] +Adds/m);
  expect(stdout).not.toContain('…'); // whoever reads a pipe wants whole words
  expect(stderr).toBe('not listed: gone is failed: it died\n');
  expect(await place.run('tools', 'gone')).toMatchObject({ code: 4, stdout: '' });
});

test('restart tells the state that came of it', async () => {
  await using place = workplace();
  let entry = server('demo');
  await place.control(() => ({ result: JSON.stringify(entry) }));
  expect(await place.run('restart', 'demo')).toMatchObject({ code: 0, stderr: '' });
  entry = server('demo', { state: 'failed', lastError: 'exited with code 3' });
  const { code, stderr } = await place.run('restart', 'demo');
  expect({ code, stderr }).toEqual({ code: 1, stderr: 'demo is failed: exited with code 3\n' });
});

test('down without a daemon has nothing to stop, and up with one has nothing to start', async () => {
  await using place = workplace();
  expect(await place.run('down')).toMatchObject({ code: 0, stdout: 'troupe is not running; nothing to stop\n' });
  await place.control(status);
  for (const words of [['up'], ['up', '--detach']]) {
    const { code, stdout } = await place.run(...words);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^troupe is already running \(pid 1, since \d{4}-.*\); nothing to start\n$/);
  }
});

test('add and rm change the file and nothing else in it', async () => {
  await using place = workplace();
  writeFileSync(place.config, '{\n  // mine\n  "mcpServers": {}\n}\n');
  const added = await place.run('add', 'demo', '--env', 'KEY=a=b', '--', 'npx', '-y', 'some-server', '--json');
  expect(added).toMatchObject({ code: 0, stderr: 'it takes effect with `troupe up`\n' });
  const file = readFileSync(place.config, 'utf8');
  expect(file).toContain('// mine');
  expect(file.replaceAll(/\s/g, '')).toContain(
    '"demo":{"command":"npx","args":["-y","some-server","--json"],"env":{"KEY":"a=b"}}',
  );
  expect(await place.run('add', 'demo', '--', 'x')).toMatchObject({ code: 2 });
  expect(await place.run('add', 'other')).toMatchObject({ code: 2 });
  expect(await place.run('rm', 'demo')).toMatchObject({ code: 0 });
  expect(await place.run('rm', 'demo')).toMatchObject({ code: 1 });
});

test('add says what has become of the server, and that it was added all the same', async () => {
  await using place = workplace();
  const reload = { added: ['web'], removed: [], relaunched: [], retuned: [] };
  const states = [server('web', { state: 'opening' })];
  const last = server('web', { state: 'waiting', lastError: 'web.example.com cannot be reached: ECONNREFUSED' });
  const daemon = { ...STATUS.daemon, config: place.config };
  await place.control(({ method }) => {
    const servers = [states.shift() ?? last];
    return { result: JSON.stringify(method === 'reload' ? reload : { ...STATUS, daemon, servers }) };
  });
  states.push(server('web', { state: 'opening' }), server('web', { state: 'opening' }));
  expect(await place.run('add', 'web', '--url', 'https://web.example.com/mcp')).toEqual({
    code: 0,
    stdout: `added web to ${place.config}\n`,
    stderr:
      'the running daemon has taken it up\n' + 'web is waiting: web.example.com cannot be reached: ECONNREFUSED\n',
  });
  const json = await place.run('add', 'more', '--url', 'https://web.example.com/mcp', '--json');
  expect(JSON.parse(json.stdout).servers).toEqual([
    { name: 'web', state: 'waiting', lastError: 'web.example.com cannot be reached: ECONNREFUSED' },
  ]);
});

test('add of a server that comes up says so', async () => {
  await using place = workplace();
  const reload = { added: ['demo'], removed: [], relaunched: [], retuned: [] };
  await place.control(({ method }) => ({
    result: JSON.stringify(method === 'reload' ? reload : { ...STATUS, servers: [server('demo', { tools: 1 })] }),
  }));
  expect((await place.run('add', 'demo', '--', 'x')).stderr).toBe(
    'the running daemon has taken it up; demo is ready, with 1 tool\n',
  );
});

test('add --url writes a server behind an address, and repeats no secret', async () => {
  await using place = workplace();
  const words = ['add', 'web', '--url', 'https://h/mcp', '--header', 'Authorization=Bearer s3cret', '--type', 'sse'];
  const { code, stdout, stderr } = await place.run(...words);
  expect(code).toBe(0);
  expect(stdout + stderr).not.toContain('s3cret');
  expect(JSON.parse(readFileSync(place.config, 'utf8')).mcpServers.web).toEqual({
    ...{ type: 'sse', url: 'https://h/mcp', headers: { Authorization: 'Bearer s3cret' } },
  });
  expect(await place.run('add', 'ftp', '--url', 'ftp://h')).toMatchObject({ code: 2 });
  const bad = await place.run('add', 'bad', '--url', 'https://h', '--header', 's3cret');
  expect(bad).toMatchObject({ code: 2, stderr: 'troupe: --header wants NAME=value\n' });
});

test('status shows the HTTP door, the sessions and which daemon it is', async () => {
  await using place = workplace();
  const daemon = { ...STATUS.daemon, instance: 'work' };
  let http: object = { state: 'listening', url: 'http://127.0.0.1:7411' };
  await place.control(() => ({ result: JSON.stringify({ ...STATUS, daemon, http, sessions: 2 }) }));
  const { stdout } = await place.run('status');
  expect(stdout).toMatch(/^troupe +work +running/m);
  expect(stdout).toMatch(/^http +listening +http:\/\/127\.0\.0\.1:7411\/mcp +.*2 sessions$/m);
  http = { state: 'failed', url: null, error: 'port 7411 is taken' };
  expect((await place.run('status')).stdout).toMatch(/^http +failed +port 7411 is taken/m);
});

test('import shows what it will add, and adds it only when told to', async () => {
  await using place = workplace();
  const source = join(place.directory, 'other.json');
  writeFileSync(
    source,
    JSON.stringify({
      mcpServers: {
        demo: { command: 'npx', args: ['x'], env: { TOKEN: 's3cret' } },
        web: { url: 'https://h/mcp?key=s3cret', headers: { 'X-Key': 's3cret' } },
      },
    }),
  );
  const dry = await place.run('import', source, '--dry-run');
  expect(dry.code).toBe(0);
  expect(dry.stdout).toMatch(/^demo +npx x +TOKEN$/m);
  expect(dry.stdout).toMatch(/^web +https:\/\/h\/mcp\?… +X-Key$/m);
  expect(dry.stdout + dry.stderr).not.toContain('s3cret');
  expect(await place.run('import', source)).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') });
  expect(existsSync(place.config)).toBe(false);
  expect(await place.run('import', source, '--yes')).toMatchObject({ code: 0 });
  expect(readFileSync(place.config, 'utf8')).toContain('s3cret');
  expect((await place.run('import', source, '--yes')).stderr).toContain('has it already');
});
