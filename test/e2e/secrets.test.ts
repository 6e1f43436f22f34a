// What troupe itself says holds no secret that it was configured with, and the last words of a server are for its owner's log
// alone. What a server answers to a call is not troupe's: it passes as it is.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

const KEY = 'sk-live-5f2c9e77aa10';
const PHRASE = 'blue"horse 42 \\ battery';
const SAID = `key ${KEY} and ${PHRASE} in us-east-1`;
const env = { API_KEY: KEY, SETTINGS: PHRASE, REGION: 'us-east-1' };
const never = { restart: { intensity: 0 } };

let d: Awaited<ReturnType<typeof daemon>>;
const events: string[] = [];
const teller = (how: string, more: object = never) => {
  const definition = fixture('tells-secrets', more, env);
  return { ...definition, args: [...definition.args, how] };
};

beforeAll(async () => {
  d = await daemon({ servers: { talks: teller('talks', { restart: { backoffMs: [20] } }) } });
  const nc = await d.nats();
  nc.subscribe('troupe.ev.>', { callback: (_, msg) => events.push(`${msg.subject} ${msg.string()}`) });
  await nc.flush();
  const dies = teller('dies');
  await d.write({ talks: teller('talks', { restart: { backoffMs: [20] } }), dies, refuses: teller('refuses') });
  await d.until('dies', 'failed');
  await d.until('refuses', 'failed');
});
afterAll(() => d[Symbol.asyncDispose]());

test('a result, an error and a log message of a server pass unchanged: they are its own', async () => {
  expect((await d.request('troupe.call.talks.tell')).data.content[0].text).toBe(SAID);
  expect((await d.request('troupe.call.talks.refuse')).data.message).toBe(SAID);
  await eventually(() => expect(events.some((each) => each.includes('.log.error') && each.includes(KEY))).toBe(true));
});

test('who calls a server that died hears its reason and where its owner reads more', async () => {
  const lost = await d.request('troupe.call.talks.die');
  expect(lost.error).toBe(
    'server talks went away: exited with code 4; see troupe logs talks; the request was sent and its outcome is unknown',
  );
  const refused = await d.request('troupe.call.dies.echo');
  expect(refused.error).toBe('server dies is failed: exited with code 3; see troupe logs dies; troupe start dies');
  const unwilling = await d.request('troupe.call.refuses.echo');
  expect(unwilling.error).toContain('not with key [masked] and [masked] in us-east-1');
});

test('events, status, log and database hold no secret, and only the log has what a server said on stderr', async () => {
  await eventually(async () => expect(await d.log()).toContain('fatal: key [masked]'));
  await eventually(() => expect(events.some((each) => each.includes('.ev.dies.state.failed'))).toBe(true));
  const ours = events.filter((each) => !each.includes('.log.')).join('\n');
  const database = join(d.state, 'database');
  const files = readdirSync(database).filter((name) => name.startsWith('troupe.db'));
  const places = {
    status: JSON.stringify(await d.status()),
    events: ours,
    log: await d.log(),
    database: files.map((name) => readFileSync(join(database, name), 'latin1')).join('\n'),
  };
  expect(places.database).toContain('see troupe logs dies'); // the reason itself is recorded
  for (const [place, text] of Object.entries(places)) {
    expect({ place, has: text.includes(KEY) }).toEqual({ place, has: false });
    expect({ place, has: /horse 42/.test(text) }).toEqual({ place, has: false });
    if (place !== 'log') expect({ place, has: text.includes('cannot log in') }).toEqual({ place, has: false });
  }
  expect(places.log).toContain('Error: cannot log in with key [masked] and [masked] in us-east-1');
  for (const line of places.log.trim().split('\n')) expect(() => JSON.parse(line)).not.toThrow();
});

test('the owner sees in the terminal why a server died, from the log, and doctor masks too', async () => {
  const words = '  │ Error: cannot log in with key [masked] and [masked] in us-east-1';
  for (const verb of ['ps', 'status']) {
    const { stdout } = await d.cli(verb);
    expect(stdout).toContain(`dies is failed: exited with code 3; see troupe logs dies\n${words}`);
  }
  const started = await d.cli('start', 'dies');
  expect(started.exitCode).toBe(1);
  expect(started.stderr).toBe(`dies is failed: exited with code 3; see troupe logs dies\n${words}`);
  expect(
    JSON.parse((await d.cli('ps', '--json')).stdout)
      .map((each: object) => JSON.stringify(each))
      .join(),
  ).not.toContain('cannot log in');
  const doctor = await d.cli('doctor');
  expect(doctor.stdout).toContain('cannot log in with key [masked]');
  expect(doctor.stdout).not.toContain(KEY);
});
