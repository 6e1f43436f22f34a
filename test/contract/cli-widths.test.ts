// What a person sees on real terminals of 80 and of 48 columns: whole names, whole causes, no line that wraps.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { type Workplace, workplace } from '../support/cli.ts';
import { screenOf } from '../support/screen.ts';
import { terminal } from '../support/terminal.ts';

const MAIN = fileURLToPath(new URL('../../dist/bundle/troupe.cjs', import.meta.url));
const CAUSE = 'connecting to the database at db.example.com port 5432 was refused: too many clients already';
const server = (name: string, more: object = {}) => ({
  ...{ name, state: 'ready', since: Date.now() - 65_000, pid: 4242, restarts: 3, inFlight: 1, lastError: null },
  ...{ tools: 13, calls: 120_000, errors: 7, ...more },
});
const SERVERS = [
  server('everything'),
  server('filesystem-of-the-team', { state: 'needs login', lastError: 'it wants to know who you are' }),
  server('database', { state: 'failed', pid: null, lastError: `exited with code 1 after ${CAUSE}` }),
];
const STATUS = {
  daemon: {
    ...{ pid: 123_456, version: '0.5.0', startedAt: 0, uptimeMs: 65_000, state: 'running', instance: null },
    ...{ stateDir: '/s', config: '/c/troupe.json', logFile: '/s/troupe.log', memoryBytes: 60 * 2 ** 20 },
  },
  bus: { state: 'online', url: 'nats://127.0.0.1:4222', managed: true, pid: 77, outbox: 12 },
  http: { state: 'listening', url: 'http://127.0.0.1:7411', isOpen: true },
  sessions: 2,
  store: { state: 'ready', message: '' },
  plugins: [{ name: 'redact', state: 'failed', error: 'redact needs "patterns", a list of regular expressions' }],
  servers: SERVERS,
};
const ITEMS = ['get-sum', 'trigger-long-running-operation'].map((name) => ({
  server: 'everything',
  item: {
    name,
    description: 'Does what it says. '.repeat(8),
    inputSchema: { properties: { duration: {}, steps: {} } },
  },
}));

/** The lines on the screen, and how many of them had to wrap. */
async function seen(place: Workplace, columns: number, ...words: string[]) {
  const { PATH } = process.env;
  const env = { PATH, HOME: place.directory, TROUPE_STATE: place.directory, TROUPE_CONFIG: place.config };
  await using screen = terminal([process.execPath, MAIN, ...words], { env, columns, rows: 60 });
  await screen.code;
  const { lines, wraps } = screenOf(screen.raw(), columns, 60);
  return { lines, wraps, text: lines.join('\n'), flat: lines.join(' ').replaceAll(/\s+/g, ' ') };
}

test('at 80 columns and at 48 names are whole, causes are whole, and nothing wraps', async () => {
  await using place = workplace();
  mkdirSync(join(place.directory, 'logs'), { recursive: true });
  const line = { level: 30, time: 1, server: 'database', source: 'stderr', msg: 'Error: no room for one more client' };
  writeFileSync(join(place.directory, 'logs', 'troupe.log'), `${JSON.stringify(line)}\n`);
  await place.control(({ method }) => ({
    result: JSON.stringify(method === 'list' ? { items: ITEMS, missing: [] } : STATUS),
  }));
  for (const columns of [80, 48]) {
    const [ps, status, tools] = await Promise.all(['ps', 'status', 'tools'].map((verb) => seen(place, columns, verb)));
    for (const shown of [ps, status]) {
      expect(shown?.wraps).toBe(0);
      for (const { name, state } of SERVERS) expect(shown?.text).toMatch(new RegExp(`^${name} +${state}\\b`, 'm'));
      expect(shown?.flat).toContain(`database is failed: exited with code 1 after ${CAUSE}`);
      expect(shown?.text).toContain('  │ Error: no room for one more client');
    }
    expect(ps?.lines[0]).toMatch(columns === 80 ? /SINCE +PID +RETRIES +IN FLIGHT$/ : /^SERVER +STATE +SINCE$/);
    expect(status?.flat).toContain('redact needs "patterns", a list of regular expressions');
    expect(status?.flat).toContain('open to other machines, with the token of troupe env');
    expect(tools?.wraps).toBe(0);
    for (const { item } of ITEMS) expect(tools?.text).toContain(item.name);
  }
}, 30_000);

test('a question in the inbox has whole names at 48 columns, and times where there is room', async () => {
  await using place = workplace();
  const times = { openedAt: Date.now(), expiresAt: Date.now() + 300_000 };
  const about = { server: 'filesystem', tool: 'write_file', principal: '_', arguments: {} };
  const ask = { id: 'f'.repeat(32), kind: 'approval', stage: 'answer', ...about, ...times };
  await place.control(() => ({ result: JSON.stringify({ version: 1, asks: [ask] }) }));
  const [wide, narrow] = await Promise.all([seen(place, 80, 'inbox'), seen(place, 48, 'inbox')]);
  expect(wide.lines[0]).toMatch(/^ID +AGE +EXPIRES +KIND +SERVER +TOOL$/);
  expect(narrow.lines.slice(0, 2)).toEqual([
    expect.stringMatching(/^ID +KIND +SERVER +TOOL$/),
    expect.stringMatching(/^f{8} +approval +filesystem +write_file$/),
  ]);
}, 30_000);

test('what `doctor` finds, and the help of a verb, are folded between words at 48 columns', async () => {
  await using place = workplace({ NATS_URL: 'nats://127.0.0.1:1' });
  const throws = 'throw new Error("the licence file of the database server has expired since yesterday")';
  writeFileSync(
    place.config,
    JSON.stringify({ mcpServers: { old: { command: process.execPath, args: ['-e', throws] } } }),
  );
  const [doctor, help] = await Promise.all([seen(place, 48, 'doctor'), seen(place, 48, 'help', 'up')]);
  expect(doctor.flat).toContain('it said:');
  expect(doctor.flat).toContain('Error: the licence file of the database server has expired since yesterday');
  expect(doctor.flat).not.toContain('node:internal');
  expect([doctor.wraps, help.wraps]).toEqual([0, 0]);
}, 30_000);
