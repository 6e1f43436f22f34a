// A fleet of remote servers in this process, with a real store, catalog and lanes: everything of the daemon that stands
// behind a remote server, and nothing in front of it. And HTTP servers to be behind: free port, gone with the scope.

import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Writable } from 'node:stream';
import pino from 'pino';
import { createPermissions } from '../../src/asks/waiting/permissions.ts';
import type { Call, Outcome, Signal } from '../../src/calls/call.ts';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { type RemoteServer, settingsSchema } from '../../src/config/schema.ts';
import { type Audience, requestBehind } from '../../src/servers/attribution.ts';
import type { Asked as Question } from '../../src/servers/connection/session.ts';
import { Fleet, type FleetOptions } from '../../src/servers/fleet.ts';
import { createLists } from '../../src/servers/lists.ts';
import type { Member } from '../../src/servers/member.ts';
import { loadRemote } from '../../src/servers/remote/loader.ts';
import { Upkeep } from '../../src/servers/upkeep.ts';
import { openStore } from '../../src/store/store.ts';
import { realWorld } from '../../src/world/world.ts';
import { eventually } from './eventually.ts';
import { scratch } from './scratch.ts';

export type RemoteSetup = Partial<Pick<RemoteServer, 'transport' | 'headers'>> & { settings?: object };

export async function remoteCast(url: string, setup: RemoteSetup = {}, more: Partial<FleetOptions> = {}) {
  const dir = await scratch();
  const store = await openStore(dir.path);
  const catalog = createCatalog(store);
  const log: string[] = [];
  const heard: { level: string; data: unknown; audience: Audience }[] = [];
  const updates: string[] = [];
  const upkeep = new Upkeep({
    lists: createLists({ catalog, onChange: () => {}, onTrouble: () => {} }),
    news: {
      log: (_, level, params, audience) => heard.push({ level, data: JSON.parse(String(params)).data, audience }),
      updated: (_, uri) => updates.push(uri),
      elicited: () => {},
      foreign: () => {},
    },
    levelsFor: () => [],
  });
  const stream = new Writable({
    write(line, _, done) {
      log.push(String(line));
      done();
    },
  });
  await loadRemote();
  const fleet = new Fleet({
    ...{ catalog, store, env: {}, daemon: 'test', driver: 'table', record: () => {} },
    ...{ onOpen: upkeep.opened, onNotice: upkeep.said, onRetuned: upkeep.retuned, onState: () => {} },
    onAsk: toItsCall,
    permissions: createPermissions({
      catalog,
      store,
      world: realWorld,
      openAsk: () => () => {},
      noteVisits: () => {},
      wake: () => {},
    }),
    logger: pino({ level: 'debug' }, stream),
    onCrash: (why) => {
      throw new Error(why);
    },
    ...more,
  });
  const { settings, ...rest } = setup;
  const config: RemoteServer = {
    ...{ transport: 'http', name: 'far', url, headers: {}, ...rest },
    oauth: { grant: 'authorization_code', redirectPort: 0 },
    settings: settingsSchema.parse({ restart: { backoffMs: [20] }, ...settings }),
  };
  fleet.start();
  const member = fleet.launch(config);

  /** One call, and every signal that came before its outcome. */
  function request(method: string, params: object | string, options: Partial<Call> = {}) {
    const signals: Signal[] = [];
    const text = typeof params === 'string' ? params : JSON.stringify(params);
    const { name = '', uri = '' } = JSON.parse(text);
    const outcome = new Promise<Outcome>((settle) => {
      fleet.submit({
        ...{ requestId: `${Math.random()}`, server: 'far', method, name: name || uri, params: Buffer.from(text) },
        ...{ principal: '_', door: 'control', onSignal: (signal) => signals.push(signal), settle, ...options },
      });
    });
    return { outcome, signals };
  }

  return {
    ...{ fleet, catalog, config, member, log, heard, updates, request },
    call: (tool: string, args: object = {}, options: Partial<Call> = {}) =>
      request('tools/call', { name: tool, arguments: args }, options).outcome,
    until: (state: string, timeoutMs = 10_000) =>
      eventually(() => {
        if (member.state !== state) throw new Error(`it is ${member.state}, not ${state}: ${member.why}`);
      }, timeoutMs),
    /** The names of its tools, once they have been read. */
    tools: () =>
      eventually(() => {
        const { isFresh, names } = catalog.get('far', 'tools');
        if (!isFresh) throw new Error('its tools have not been read');
        return names;
      }),
    async [Symbol.asyncDispose]() {
      await fleet.stop();
      await store.close();
      await dir[Symbol.asyncDispose]();
    },
  };
}

/** The text of a result's first content, or the failure in a few words. */
export function said(outcome: Outcome): string {
  if (outcome.ok) return JSON.parse(String(outcome.result)).content?.[0]?.text ?? String(outcome.result);
  const { code, delivery, error } = outcome.failure;
  return error ? `error ${JSON.parse(String(error)).message}` : `${code}, ${delivery}`;
}

export async function listen(handle: RequestListener, port = 0) {
  const server = createServer(handle);
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => sockets.add(socket.on('close', () => sockets.delete(socket))));
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  const { port: taken } = server.address() as AddressInfo;
  return {
    ...{ port: taken, url: `http://127.0.0.1:${taken}/mcp`, server },
    get connections() {
      return sockets.size;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += chunk;
  return text;
}

export async function bodyOf(request: IncomingMessage): Promise<any> {
  const text = await textOf(request);
  return text === '' ? undefined : JSON.parse(text);
}

export const json = (response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}) =>
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));

export type Asked = { readonly message: any; readonly request: IncomingMessage; readonly response: ServerResponse };
export type Script = {
  /** A `tools/call`, or whatever else is not answered for it. */
  readonly call?: (asked: Asked) => unknown;
  readonly get?: RequestListener;
  /** Before anything else; true when it has answered. */
  readonly first?: (asked: Asked) => boolean;
  readonly tools?: object[];
  readonly session?: () => string | undefined;
};

/** A bare HTTP server that does as a script says, and only opens sessions and lists tools by itself. */
export function scripted({ call, get, first, tools = [], session = () => 'one' }: Script) {
  const seen: { method: string; rpc: string; params: any; headers: IncomingMessage['headers']; raw: string }[] = [];
  const capabilities = { tools: {}, logging: {}, resources: { subscribe: true } };
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const raw = await textOf(request);
    const message = raw === '' ? undefined : JSON.parse(raw);
    const { method: rpc = '', id, params } = message ?? {};
    seen.push({ method: request.method ?? '', rpc, params, headers: request.headers, raw });
    const result = (value: object, headers?: Record<string, string>) =>
      json(response, 200, { jsonrpc: '2.0', id, result: value }, headers);
    if (first?.({ message, request, response })) return;
    if (request.method === 'GET') return get ? get(request, response) : response.writeHead(405).end();
    if (request.method === 'DELETE' || id === undefined || rpc === '') return response.writeHead(202).end();
    const given = session();
    const { protocolVersion } = params;
    const serverInfo = { name: 'scripted', version: '1' };
    if (rpc === 'initialize')
      return result({ protocolVersion, capabilities, serverInfo }, given ? { 'mcp-session-id': given } : {});
    if (rpc === 'tools/list') return result({ tools: [{ name: 'do', inputSchema: { type: 'object' } }, ...tools] });
    if (rpc === 'tools/call' && call) return call({ message, request, response });
    if (rpc.endsWith('/list')) return result({ resources: [], resourceTemplates: [] });
    return result({});
  };
  return Object.assign(handle, { seen, of: (rpc: string) => seen.filter((each) => each.rpc === rpc) });
}

export const events = (response: ServerResponse) =>
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });

export const answer = (id: unknown, text: string) =>
  JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text }] } });

/** Straight to the call it belongs to: who else might answer is not what these tests are about. */
function toItsCall({ lane }: Member, { method, params, origin, answer }: Question): void {
  requestBehind(lane, origin)?.call.onAsk?.({ method, params, answer });
}

/** A web-standard handler behind node:http. */
export function bridged(handle: (request: Request) => Promise<Response>) {
  return async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = chunks.length > 0 ? { body: Buffer.concat(chunks) } : {};
    const given = { method: request.method ?? 'GET', headers: request.headers as Record<string, string>, ...body };
    const answer = await handle(new Request(`http://${request.headers.host}${request.url}`, given));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    for await (const chunk of answer.body ?? []) response.write(chunk);
    response.end();
  };
}
