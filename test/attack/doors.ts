// Every door through which a host can speak MCP, as one thing: it takes bytes as they are, and keeps what comes back.

import { type ChildProcess, spawn } from 'node:child_process';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { createInbox, headers as natsHeaders } from 'nats';
import { Agent, request } from 'undici';
import { WebSocket } from 'ws';
import { MAIN } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import type { Target } from './kit.ts';
import { INITIALIZE } from './wire.ts';

export type Opening = {
  /** `echo`, `@small`, or nothing for all servers. */
  readonly scope?: string;
  readonly version?: string;
  /** Of an HTTP door or a tree of NATS; the owner's unless told. */
  readonly token?: string;
  readonly caller?: string;
  readonly capabilities?: object;
};
export type Host = AsyncDisposable & {
  readonly door: DoorName;
  /** Bytes of one message. On a door of lines they may be several. */
  send(bytes: string | Buffer): Promise<void>;
  /** What was said to this host, as text. */
  readonly heard: string[];
  /** The session's id, where its host is told one. */
  readonly session: string | undefined;
  /** The first message that this is true of. */
  until(is: (message: any) => boolean, timeoutMs?: number): Promise<any>;
  ask(method: string, params?: object, id?: number | string): Promise<any>;
};
type Ways = { send(bytes: string | Buffer): Promise<void>; session(): string | undefined; close(): Promise<unknown> };
type Opener = (target: Target, opening: Opening, hear: (text: string) => void) => Promise<Ways>;

export const DOORS = { http, sse, websocket, control, stdio, nats } as const satisfies Record<string, Opener>;
export type DoorName = keyof typeof DOORS;
export const DOOR_NAMES = Object.keys(DOORS) as DoorName[];

const PATIENCE_MS = 10_000;

/** A host with an open session. */
export async function hostAt(door: DoorName, target: Target, opening: Opening = {}): Promise<Host> {
  const heard: string[] = [];
  const ways = await DOORS[door](target, opening, (text) => heard.push(text));
  const until = (is: (message: any) => boolean, timeoutMs = PATIENCE_MS) =>
    eventually(() => {
      const found = heard.map(parsed).find((message) => message !== undefined && is(message));
      if (found === undefined) throw new Error(`not heard at ${door}; but ${heard.slice(-2).join(' ').slice(0, 300)}`);
      return found;
    }, timeoutMs);
  const { version = INITIALIZE.params.protocolVersion, capabilities = {} } = opening;
  const params = { ...INITIALIZE.params, protocolVersion: version, capabilities };
  await ways.send(JSON.stringify({ ...INITIALIZE, params }));
  await until(({ id }) => id === 0);
  await ways.send('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  return {
    ...{ door, heard, until, send: ways.send },
    get session() {
      return ways.session();
    },
    async ask(method, params = {}, id = `${method} ${heard.length}`) {
      await ways.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
      return until((message) => message.id === id);
    },
    async [Symbol.asyncDispose]() {
      await ways.close();
    },
  };
}

function parsed(text: string): any {
  try {
    return JSON.parse(text) ?? undefined;
  } catch {
    return undefined; // what is no JSON is no message
  }
}

// ── HTTP ─────────────────────────────────────────────────────────────────────

const pathOf = (word: string, scope = '') => (scope === '' ? `/${word}` : `/${word}/${encodeURIComponent(scope)}`);

async function http(target: Target, { scope, token = target.token, version }: Opening, hear: (text: string) => void) {
  const agent = new Agent({ connections: 64 });
  const url = `${target.http}${pathOf('mcp', scope)}`;
  let session: string | undefined;
  const headers = () => ({
    ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    authorization: `Bearer ${token}`,
    ...(session && { 'mcp-session-id': session, 'mcp-protocol-version': version ?? '2025-11-25' }),
  });
  return {
    async send(body: string | Buffer) {
      const answer = await request(url, {
        ...{ method: 'POST', dispatcher: agent, headers: headers(), body, bodyTimeout: 0 },
      });
      session ??= answer.headers['mcp-session-id'] as string | undefined;
      if (!String(answer.headers['content-type']).startsWith('text/event-stream')) hear(await answer.body.text());
      else void readEvents(answer.body, (data) => hear(data)).catch(() => {}); // we left
    },
    session: () => session,
    async close() {
      if (session) await (await request(url, { method: 'DELETE', dispatcher: agent, headers: headers() })).body.dump();
      await agent.destroy();
    },
  };
}

async function readEvents(body: AsyncIterable<Buffer>, onData: (data: string, name: string) => void): Promise<void> {
  let text = '';
  for await (const chunk of body) {
    text += chunk.toString('utf8');
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const field = (name: string) => new RegExp(`^${name}: ?([^\\n]*)$`, 'm').exec(block)?.[1] ?? '';
      if (field('data')) onData(field('data'), field('event'));
    }
  }
}

async function sse(target: Target, { scope, token = target.token }: Opening, hear: (text: string) => void) {
  const agent = new Agent({ connections: 64 });
  const authorization = `Bearer ${token}`;
  const url = `${target.http}${pathOf('sse', scope)}`;
  const headers = { authorization, accept: 'text/event-stream' };
  const { body } = await request(url, { dispatcher: agent, headers, bodyTimeout: 0 });
  let endpoint = '';
  const reading = readEvents(body, (data, name) => {
    if (name === 'endpoint') endpoint = data;
    else hear(data);
  }).catch(() => {}); // we left
  await eventually(() => endpoint !== '');
  return {
    async send(text: string | Buffer) {
      const headers = { 'content-type': 'application/json', authorization };
      const options = { method: 'POST', dispatcher: agent, headers, body: text } as const;
      const answer = await request(new URL(endpoint, target.http), options);
      hear(await answer.body.text());
    },
    session: () => new URL(endpoint, target.http).searchParams.get('sessionId') ?? undefined,
    async close() {
      body.destroy();
      await reading;
      await agent.destroy();
    },
  };
}

async function websocket(target: Target, { scope, token = target.token }: Opening, hear: (text: string) => void) {
  const url = `${target.http.replace('http', 'ws')}${pathOf('ws', scope)}`;
  const socket = new WebSocket(url, ['mcp'], { headers: { authorization: `Bearer ${token}` } });
  socket.on('message', (data) => hear(String(data)));
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  socket.on('error', () => {}); // it shows as silence
  return {
    send: async (bytes: string | Buffer) => socket.send(bytes.toString()),
    session: () => undefined,
    close: async () => socket.terminate(),
  };
}

// ── The owner's own ──────────────────────────────────────────────────────────

async function control({ control: path }: Target, { scope = '' }: Opening, hear: (text: string) => void) {
  const socket = connect(path);
  let session: string | undefined;
  socket.on('error', () => {}); // it shows as silence
  createInterface(socket)
    .on('error', () => {})
    .on('line', (line) => {
      session ??= /"troupe\/session","params":\{"session":"([^"]+)"/.exec(line)?.[1];
      hear(line);
    });
  socket.write(`${JSON.stringify({ jsonrpc: '2.0', id: 'door', method: 'mcp', params: { scope, session: '' } })}\n`);
  return {
    send: async (bytes: string | Buffer) => void socket.write(Buffer.concat([Buffer.from(bytes), NEWLINE])),
    session: () => session,
    close: async () => socket.destroy(),
  };
}

const NEWLINE = Buffer.from('\n');

async function stdio({ state }: Target, { scope }: Opening, hear: (text: string) => void) {
  const env = { PATH: process.env.PATH ?? '', HOME: state, TROUPE_STATE: state };
  const child: ChildProcess = spawn(process.execPath, [MAIN, 'connect', ...(scope ? [scope] : [])], {
    ...{ env, stdio: ['pipe', 'pipe', 'ignore'] },
  });
  createInterface(child.stdout as NodeJS.ReadableStream).on('line', hear);
  child.stdin?.on('error', () => {}); // it shows as silence
  const closed = new Promise((resolve) => child.once('close', resolve));
  return {
    send: async (bytes: string | Buffer) => void child.stdin?.write(Buffer.concat([Buffer.from(bytes), NEWLINE])),
    session: () => undefined,
    close: () => {
      child.kill('SIGTERM');
      return closed;
    },
  };
}

// ── The bus ──────────────────────────────────────────────────────────────────

/** A name as a token of a subject. */
export const tokenOf = (name: string): string =>
  [...Buffer.from(name)]
    .map((byte) => {
      const letter = String.fromCharCode(byte);
      return /[\w-]/.test(letter) ? letter : `=${byte.toString(16).toUpperCase().padStart(2, '0')}`;
    })
    .join('');

async function nats({ nats: bus }: Target, { scope = '', caller }: Opening, hear: (text: string) => void) {
  const { connection } = bus;
  const inbox = createInbox();
  const tree = caller === undefined ? 'troupe' : `troupe.as.${caller}`;
  let [subject, session] = [scope === '' ? `${tree}.rpc` : `${tree}.rpc.${tokenOf(scope)}`, ''];
  const subscription = connection.subscribe(inbox, {
    callback(_, msg) {
      subject = msg.headers?.get('Mcp-Session-Subject') || subject;
      session ||= msg.headers?.get('Mcp-Session-Id') ?? '';
      hear(msg.string());
    },
  });
  return {
    send: async (bytes: string | Buffer) => connection.publish(subject, bytes, { reply: inbox }),
    session: () => session || undefined,
    async close() {
      const end = natsHeaders();
      end.set('Mcp-Frame', 'end');
      connection.publish(subject, '', { headers: end });
      await connection.flush();
      subscription.unsubscribe();
    },
  };
}
