// What a peer says that troupe has no word for passes: capabilities, members of results, methods and notifications; and what
// it names in its own words can be found under the names that the other side sees.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { type RawHost, rawHost } from '../support/host.ts';

let d: Daemon;
let url: string;
const open: RawHost[] = [];

beforeAll(async () => {
  d = await daemon({
    servers: {
      extras: fixture('extras'),
      other: fixture('extras', { tools: { deny: ['secret'] } }, { FEATURE: 'dull' }),
      mine: fixture('extras', { share: 'session', methods: ['skills/*'], tools: { deny: ['secret'] } }),
    },
    troupe: { http: { address: '127.0.0.1:0' }, profiles: { one: { servers: ['extras'] } } },
  });
  for (const name of ['extras', 'other', 'mine']) await d.until(name, 'ready');
  await eventually(async () => expect((await d.status()).servers.every(({ tools }) => tools > 0)).toBe(true));
  url = await d.http();
});
afterAll(async () => {
  for (const host of open) await host.close();
  await d?.[Symbol.asyncDispose]();
});

async function host(path: string, capabilities = {}) {
  const opened = await rawHost(`${url}${path}`, { capabilities });
  open.push(opened);
  return opened;
}
const call = async (at: RawHost, name: string) =>
  JSON.parse((await at.ask('tools/call', { name, arguments: {} })).result.content[0].text);

describe('at the endpoint of one server', () => {
  it('what it declares is shown, in words that troupe does not know as well', async () => {
    const { opened, ask } = await host('/mcp/extras');
    expect(opened.capabilities).toMatchObject({
      experimental: { shiny: { level: 2 } },
      extensions: { 'org.example/panels': { mimeTypes: ['text/html'] } },
    });
    expect(opened._meta).toEqual({ 'org.example/build': 7 });
    expect((await ask('tools/list')).result._meta).toEqual({ 'org.example/generation': 3 });
  });

  it('a method that troupe does not know is sent as it is, and answered as it is', async () => {
    const { ask } = await host('/mcp/extras');
    const params = { cursor: 'a', 'odd key': [1.0, null] };
    expect((await ask('skills/list', params)).result).toEqual({ skills: [], params });
    expect((await ask('skills/none')).error).toMatchObject({ code: -32601, message: 'no method skills/none' });
  });

  it('no method that looks like one of MCP, or is about the connection itself, is sent', async () => {
    const { ask } = await host('/mcp/extras');
    for (const method of ['Tools/Call', 'tools.call', 'tools/call ', 'server/discover', 'notifications/x', 'rpc.x'])
      expect((await ask(method, { name: 'panel' })).error, method).toMatchObject({ code: -32601 });
  });

  it('where the tools of a server are restricted only the methods are sent that the configuration names', async () => {
    const [other, mine] = [await host('/mcp/other'), await host('/mcp/mine')];
    const { error } = await other.ask('skills/list');
    expect(error).toMatchObject({ code: -32601, message: expect.stringContaining('x-troupe.methods') });
    expect((await mine.ask('skills/list')).result.skills).toEqual([]);
    expect((await mine.ask('other/list')).error.message).toContain('x-troupe.methods');
  });

  it('notifications that troupe does not know pass both ways', async () => {
    const at = await host('/mcp/mine');
    const standing = await at.get();
    await at.ask('skills/announce');
    for await (const { message } of standing.events) {
      if (message.method !== 'notifications/skills/changed') continue;
      expect(message.params).toEqual({ count: 1 });
      break;
    }
    expect(await at.notify('notifications/skills/wanted', { now: true })).toBe(202);
    await eventually(async () =>
      expect(await call(at, 'heard')).toContainEqual({
        jsonrpc: '2.0',
        method: 'notifications/skills/wanted',
        params: { now: true },
      }),
    );
  });

  it('a server that serves one session hears what its host declares', async () => {
    const extensions = { 'org.example/panels': {} };
    const at = await host('/mcp/mine', { experimental: { mine: {} }, extensions, elicitation: {} });
    const [initialize] = await call(at, 'heard');
    expect(initialize.params.capabilities).toMatchObject({
      experimental: { mine: {} },
      extensions,
      elicitation: { form: {}, url: {} },
    });
  });
});

describe('at an endpoint of many', () => {
  it('experimental capabilities are those of all, and methods of one server are not sent', async () => {
    const { opened, ask } = await host('/mcp');
    expect(opened.capabilities.experimental).toEqual({ shiny: { level: 2 }, dull: { level: 2 } });
    expect((await ask('skills/list')).error).toMatchObject({
      code: -32601,
      message: expect.stringContaining('/mcp/'),
    });
  });

  it('a resource that only a tool names is found, and read under the name that was asked for', async () => {
    const one = await host('/mcp/@one');
    const [panel] = (await one.ask('tools/list')).result.tools;
    expect(panel._meta.ui.resourceUri).toBe('ui://panel');
    const many = await host('/mcp');
    const { tools } = (await many.ask('tools/list')).result;
    const named = tools.filter((tool: any) => tool._meta).map((tool: any) => tool._meta.ui.resourceUri);
    expect(named).toEqual(['troupe+extras:ui://panel', 'troupe+other:ui://panel', 'troupe+mine:ui://panel']);
    const { contents } = (await many.ask('resources/read', { uri: named[1] })).result;
    expect(contents.map(({ uri }: any) => uri)).toEqual([named[1], `${named[1]}/part`]);
  });
});
