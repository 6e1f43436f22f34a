// APIs that refuse, delay, lie or vanish: each is one sentence that names the host and the remedy, within the time that was
// given, and never with the key in it, nor with the API's own text, which may be the question's.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { post } from '../../src/plugin/post.ts';
import { failing, KEY, modelApi, type Reply, type Vendor } from '../support/model-api.ts';
import { modelStage } from '../support/model-stage.ts';

const HALF = KEY.slice(0, 16);
const erring =
  (error: unknown, body: object | null = { error }): Reply =>
  (to) =>
    to.writeHead(400).end(JSON.stringify(body));
const busy = (vendor: Vendor, after: string, status = 429) =>
  failing(vendor, status, 'Rate limit reached', { 'retry-after': after });

describe.each<Vendor>(['openai', 'anthropic'])('sampling-%s', (vendor) => {
  let stage: Awaited<ReturnType<typeof modelStage>>;
  beforeAll(async () => {
    stage = await modelStage(vendor, { timeoutMs: 1_500 });
  });
  afterAll(() => stage[Symbol.asyncDispose]());

  /** The sentence of the failure; neither it nor the log nor what it was caused by knows the key. */
  async function trouble(...replies: Reply[]): Promise<string> {
    stage.api.reply(...replies);
    const error = await stage.ask('A secret question').then(expect.fail, (reason: Error) => reason);
    for (const seen of [error.message, error.stack, String((error.cause as Error).stack), stage.log()]) {
      expect(seen).not.toContain(HALF);
      expect(seen).not.toContain('secret question');
    }
    return error.message;
  }
  const tries = async (act: () => Promise<unknown>): Promise<number> => {
    const before = stage.api.asked.length;
    await act();
    return stage.api.asked.length - before;
  };

  it.each<[string, (vendor: Vendor) => Reply, RegExp]>([
    ['400', (it) => failing(it, 400, 'no'), /refused the request \(400, some_error\); check what the model takes, and/],
    ['401', (it) => failing(it, 401, `Incorrect key ${HALF}***`), /refuses us \(401\); check apiKey/],
    ['403', (it) => failing(it, 403, `Key ${HALF} may not`), /refuses us \(403\); check apiKey/],
    ['404', (it) => failing(it, 404, 'no'), /no such model or address \(404, some_error\); check models and baseUrl$/],
    ['413', (it) => failing(it, 413, 'no'), /takes no request as large as this \(413, some_error\); ask with less$/],
    ['500', (it) => failing(it, 500, 'no'), /failed \(500, some_error\); try again later$/],
    ['an echo of the key', (it) => failing(it, 400, `you sent ${KEY}`), /\(400, some_error\); [^:]*$/],
    ['an echo of the question', (it) => failing(it, 400, 'bad: A secret question'), /\(400, some_error\); [^:]*$/],
    ['a code', () => erring({ type: 'invalid', code: 'context_length' }), /\(400, invalid, context_length\); /],
    ['the same twice', () => erring({ type: 'overlong', code: 'overlong', param: 'x' }), /\(400, overlong\); /],
    ['an error with nothing around it', () => erring(undefined, { code: 'overlong' }), /\(400, overlong\); /],
    ['codes that are no names', () => erring({ type: 'Your secret question', code: 7 }), /\(400\); /],
    ['very long codes', () => erring({ type: 'x'.repeat(65), code: '\u001b[2J' }), /\(400\); /],
    ['the key as a code', () => erring({ type: `bad-${KEY}`, code: HALF }), /\(400\); /],
    ['a word of the question as a code', () => erring({ type: 'secret', code: 'question' }), /\(400\); /],
    ['an error that is text', () => erring('A secret question'), /\(400\); /],
    ['no error', () => erring(null, null), /\(400\); /],
    ['a page of a proxy', () => (to) => to.writeHead(502).end('<html>'), /failed \(502\); try again later/],
    ['no JSON', () => (to) => to.end(`{"key": "${KEY}`), /answered with what is no JSON; check baseUrl/],
    ['nothing', () => (to) => to.end(), /answered with what is no JSON/],
    [
      'a redirect',
      () => (to) => to.writeHead(307, { location: '/' }).end(),
      /redirects elsewhere \(307\), where the key/,
    ],
    ['an end in the middle', () => (to) => to.socket?.destroy(), /cannot be reached: it ended the connection/],
    [
      'a half answer',
      () => (to) => to.writeHead(200, { 'content-length': 99 }).write('{') && to.destroy(),
      /cannot be reached: /,
    ],
    ['no answer', () => () => {}, /did not answer within 1.5 s; raise timeoutMs/],
    ['half an answer', () => (to) => to.write('{'), /did not answer within 1.5 s; raise timeoutMs/],
  ])('says what to do about %s, and asks once', async (_, replyFor, sentence) => {
    const made = await tries(async () => {
      const said = await trouble(replyFor(vendor));
      expect(said).toMatch(sentence);
      expect(said).toContain(`plugin sampling-${vendor}: ${stage.api.host} `);
    });
    expect(made).toBe(1);
  });

  it('gives up on an answer that is too large, without taking it in', async () => {
    const megabyte = Buffer.alloc(1024 ** 2, ' ');
    let sent = 0;
    const endless: Reply = (to) => {
      const more = (): boolean => {
        while (sent < 1_000 && to.write(megabyte)) sent += 1;
        return true;
      };
      to.on('drain', more);
      more();
    };
    expect(await trouble(endless)).toMatch(/answered with more than 16777216 bytes/);
    expect(sent).toBeLessThan(100);
  });

  it('waits as long as a busy service says, in seconds or until a time, and is answered', async () => {
    await using patient = await modelStage(vendor);
    const started = performance.now();
    patient.api.reply(busy(vendor, '0.3'), busy(vendor, new Date(Date.now() - 5_000).toUTCString(), 529));
    expect((await patient.ask('Hi')).content.text).toBe('Good day.');
    expect(patient.api.asked).toHaveLength(3);
    expect(performance.now() - started).toBeGreaterThan(290);
  });

  it('gives up after two retries, and says that it has tried', async () => {
    const made = await tries(async () =>
      expect(await trouble(busy(vendor, '0'), busy(vendor, '0', 503), busy(vendor, '0'))).toMatch(
        /is busy or its limit is reached \(429, some_error, also after 2 retries, Retry-After: 0\); try again later$/,
      ),
    );
    expect(made).toBe(3);
  });

  it.each([
    ['longer than we may take', { 'retry-after': '30' }],
    ['for hours', { 'retry-after': '7200' }],
    ['for ever', { 'retry-after': '0', 'x-should-retry': 'false' }],
  ])('does not ask again when it would have to wait %s', async (_, headers) => {
    const made = await tries(async () =>
      expect(await trouble(failing(vendor, 429, 'quota', headers))).toMatch(
        /^.* \(429, some_error, Retry-After: \d+\); try/,
      ),
    );
    expect(made).toBe(1);
  });

  it('repeats when to come again only where that is a time', async () => {
    const quota = (after: string) => failing(vendor, 429, 'quota', { 'retry-after': after, 'x-should-retry': 'false' });
    expect(await trouble(quota('A secret question'))).toMatch(/\(429, some_error\); try/);
    const date = new Date(Date.now() + 60_000).toUTCString();
    expect(await trouble(quota(date))).toContain(`(429, some_error, Retry-After: ${date}); try`);
  });

  it('stops at once when nobody waits any more', async () => {
    const caller = new AbortController();
    const closed = new Promise((resolve) =>
      stage.api.reply((to) => {
        to.on('close', resolve);
        caller.abort();
      }),
    );
    await expect(stage.ask('Hi', caller.signal)).rejects.toMatchObject({ code: 'cancelled' });
    await closed;
  });

  it('says that a wrong key is wrong, though the API quotes it', async () => {
    await using other = await modelStage(vendor, { apiKey: `${KEY}x` });
    await expect(other.ask('Hi')).rejects.toThrow(/refuses us \(401\); check apiKey/);
  });

  it('offers nothing any more once it has stopped', async () => {
    await using other = await modelStage(vendor);
    await other.stop();
    expect(other.models.hasModel()).toBe(false);
  });
});

describe('post', () => {
  const request = { headers: { authorization: KEY }, body: {} };

  it.each([
    [
      'http://nobody.invalid/v1?key=QUERY',
      /^nobody.invalid cannot be reached: (there is no such host|its name cannot)/,
    ],
    ['http://127.0.0.1:1/v1?key=QUERY', /^127.0.0.1:1 cannot be reached: (nobody listens there|the request cannot)/],
    ['http://user:QUERY@127.0.0.1:9/', /^127.0.0.1:9 cannot be reached: the request cannot be sent/],
    ['not an address QUERY', /^the address cannot be reached: the request cannot be sent/],
  ])('names the host of %s, the reason and the remedy, and no more', async (url, sentence) => {
    const failed = post({ ...request, url });
    await expect(failed).rejects.toThrow(sentence);
    await expect(failed).rejects.not.toThrow(/QUERY|secret/);
  });

  it('says that nobody listens', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    await expect(post({ ...request, url: `http://127.0.0.1:${port}/` })).rejects.toThrow(/nobody listens there; start/);
  });

  it('does not quote a header that cannot be sent', async () => {
    const failed = post({ url: 'http://127.0.0.1:9/', headers: { authorization: `${KEY}\n` }, body: {} });
    await expect(failed).rejects.not.toThrow(/secret/);
  });

  it('sends nothing when nobody waits from the beginning', async () => {
    await using api = await modelApi('openai');
    const asked = post({ ...request, url: api.baseUrl, signal: AbortSignal.abort() });
    await expect(asked).rejects.toMatchObject({ code: 'cancelled' });
    expect(api.asked).toEqual([]);
  });
});
