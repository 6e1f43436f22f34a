// The headers that repeat the body: a match passes, everything else is 400 and -32001, and nobody hears of the request.

import { describe, expect, it } from 'vitest';
import { door } from '../support/http-door.ts';

const call = (method: string, params: object = {}) => ({ jsonrpc: '2.0', id: 1, method, params });
const base64 = (text: string) => `=?base64?${Buffer.from(text).toString('base64')}?=`;
const ARGUMENTS = { region: 'us-west1', count: 42, ratio: 1.5, dry: true, none: null, deep: { text: 'Hello, 世界' } };
const TOOL = call('tools/call', { name: 'sql', arguments: ARGUMENTS });
const headerDeclarations = (_: unknown, tool: string) =>
  tool !== 'sql'
    ? []
    : [
        ...[
          { header: 'Region', path: ['region'] },
          { header: 'Count', path: ['count'] },
          { header: 'Dry', path: ['dry'] },
        ],
        ...[
          { header: 'Text', path: ['deep', 'text'] },
          { header: 'None', path: ['none'] },
          { header: 'Gone', path: ['x'] },
        ],
        ...[{ header: 'Ratio', path: ['ratio'] }],
      ];

const MATCHES: [headers: Record<string, string>, body: object][] = [
  [{ 'mcp-method': 'tools/call' }, TOOL],
  [{ 'Mcp-Method': 'tools/call', 'Mcp-Name': 'sql' }, TOOL],
  [{ 'mcp-name': base64('sql') }, TOOL],
  [{ 'mcp-name': 'whatever' }, call('tools/list')],
  [{ 'mcp-name': 'file:///a' }, call('resources/read', { uri: 'file:///a' })],
  [{ 'mcp-name': base64('größe') }, call('prompts/get', { name: 'größe' })],
  [{ 'mcp-method': 'notifications/x' }, { jsonrpc: '2.0', method: 'notifications/x' }],
  [{ 'mcp-method': 'tools/call' }, { jsonrpc: '2.0', id: 1, result: {} }],
  [{ 'mcp-param-region': 'us-west1', 'mcp-param-count': '42', 'mcp-param-dry': 'true' }, TOOL],
  [{ 'mcp-param-count': '42.0', 'mcp-param-ratio': '1.50', 'mcp-param-text': base64('Hello, 世界') }, TOOL],
  [{ 'mcp-param-unheard-of': 'x' }, TOOL],
  [{ 'mcp-param-region': 'x' }, call('tools/call', { name: 'other', arguments: {} })],
];

const MISMATCHES: [headers: Record<string, string>, body: object][] = [
  [{ 'mcp-method': 'tools/list' }, TOOL],
  [{ 'mcp-method': 'Tools/Call' }, TOOL],
  [{ 'mcp-method': '' }, TOOL],
  [{ 'mcp-method': 'tools/call' }, { jsonrpc: '2.0', method: 'notifications/x' }],
  [{ 'mcp-method': 'tools/call' }, call('initialize', { protocolVersion: '2025-11-25' })],
  [{ 'mcp-name': 'SQL' }, TOOL],
  [{ 'mcp-name': 'sql' }, call('tools/call', {})],
  [{ 'mcp-name': 'sql' }, call('tools/call', { name: 7 })],
  [{ 'mcp-name': 'file:///b' }, call('resources/read', { uri: 'file:///a' })],
  [{ 'mcp-name': '=?base64?!!!?=' }, call('tools/call', { name: '=?base64?!!!?=' })],
  [{ 'mcp-name': 'größe' }, call('prompts/get', { name: 'größe' })],
  [{ 'mcp-param-region': 'us-west2' }, TOOL],
  [{ 'mcp-param-count': '43' }, TOOL],
  [{ 'mcp-param-count': 'forty-two' }, TOOL],
  [{ 'mcp-param-dry': 'True' }, TOOL],
  [{ 'mcp-param-none': 'null' }, TOOL],
  [{ 'mcp-param-gone': 'x' }, TOOL],
  [{ 'mcp-param-text': 'Hello' }, TOOL],
];

describe('headers that repeat the body', () => {
  it('pass when they say the same', async () => {
    await using d = await door({ headerDeclarations, timing: { patienceMs: 1 } });
    const mine = await d.enter();
    for (const [index, [headers, body]] of MATCHES.entries()) {
      const answered = d.post(body, { ...mine, ...headers });
      await expect.poll(() => d.received.length, { message: JSON.stringify(headers) }).toBe(index + 1);
      d.waiting.splice(0).forEach(({ line }) => void line.answer(Buffer.from('{}\n')));
      expect((await answered).status).toBeLessThan(300);
    }
  });

  it('are 400 and -32001 when they do not, with the name of the header', async () => {
    await using d = await door({ headerDeclarations });
    const mine = await d.enter();
    for (const [headers, body] of MISMATCHES) {
      const own = 'method' in body && body.method === 'initialize' ? {} : mine;
      const { status, json } = await d.post(body, { ...own, ...latin(headers) });
      expect([status, json.error.code], JSON.stringify(headers)).toEqual([400, -32001]);
      expect(json.error.message.toLowerCase()).toContain(`header mismatch: ${Object.keys(headers)[0]}`);
      expect(json.id).toBe('id' in body ? 1 : null);
    }
    expect(d.received).toEqual([]);
  });

  it('are shown briefly, and parameters not at all', async () => {
    await using d = await door({ headerDeclarations });
    const mine = await d.enter();
    const name = 'x'.repeat(5_000);
    const long = await d.post(TOOL, { ...mine, 'mcp-name': name });
    expect(long.json.error.message).toMatch(
      /^Header mismatch: Mcp-Name header value 'x{64}…' does not match .* 'sql'$/,
    );
    expect((await d.post(TOOL, { ...mine, 'mcp-param-region': 's3cret' })).text).not.toMatch(/s3cret|us-west1/);
  });

  it('are not looked for where nobody declared them', async () => {
    await using d = await door();
    const mine = await d.enter();
    expect((await d.post(call('echo'), { ...mine, 'mcp-param-region': 'x' })).status).toBe(200);
  });
});

/** What a client sends that does not encode: the bytes of its text, as a header takes them. */
const latin = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).map(([key, value]) => [key, Buffer.from(value).toString('latin1')]));
