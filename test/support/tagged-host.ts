// A host over WebSocket that is asked questions: it answers each with its own name, and keeps every message it did not expect.

import { WebSocket } from 'ws';

export type TaggedHost = Awaited<ReturnType<typeof taggedHost>>;
export type HostOptions = {
  readonly token?: string;
  /** Answers only when this resolves, for tests that want a question to stay open. */
  readonly until?: Promise<unknown>;
};

/** `url` is the HTTP door's; questions must begin with the host's name. */
export async function taggedHost(url: string, server: string, name: string, { token, until }: HostOptions = {}) {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const ws = new WebSocket(`${url.replace('http:', 'ws:')}/ws/${server}`, 'mcp', { headers });
  const open = new Map<number, (message: any) => void>();
  const asked: string[] = [];
  const strange: string[] = [];
  let sequence = 0;

  const send = (message: object) => ws.send(JSON.stringify({ jsonrpc: '2.0', ...message }));
  const request = (method: string, params: object): Promise<any> =>
    new Promise((resolve) => {
      const id = ++sequence;
      open.set(id, resolve);
      send({ id, method, params });
    });

  async function answer(id: string, params: { message: string }): Promise<void> {
    asked.push(params.message);
    if (!params.message.startsWith(`${name} `)) strange.push(`asked ${params.message}`);
    await until;
    send({ id, result: { action: 'accept', content: { said: `${name} answers ${params.message}` } } });
  }

  ws.on('message', (data) => {
    const message = JSON.parse(String(data));
    if (message.method === 'elicitation/create') return void answer(message.id, message.params);
    const resolve = message.method === undefined ? open.get(message.id) : undefined;
    open.delete(message.id);
    if (resolve) resolve(message);
    else if (!QUIET.includes(message.method)) strange.push(JSON.stringify(message));
  });
  await new Promise((resolve, reject) => ws.once('open', resolve).once('error', reject));
  const capabilities = { elicitation: {} };
  const clientInfo = { name, version: '1' };
  await request('initialize', { protocolVersion: '2025-11-25', capabilities, clientInfo });
  send({ method: 'notifications/initialized' });

  return {
    ...{ name, asked, strange, request },
    /** What the server says of the call: who answered what. */
    async ask(tag: string, ms = 0): Promise<{ tag: string; said?: string; action?: string; pid: number }> {
      const { result, error } = await request('tools/call', { name: 'ask', arguments: { tag: `${name} ${tag}`, ms } });
      return error ? { tag: '', action: JSON.stringify(error), pid: 0 } : JSON.parse(result.content[0].text);
    },
    /** Cancels the request that was made last. */
    cancel: () => send({ method: 'notifications/cancelled', params: { requestId: sequence } }),
    close: () => ws.terminate(),
  };
}

const QUIET = ['notifications/tools/list_changed', 'notifications/message'];
