// A host that speaks Streamable HTTP by hand, so that a test sees every status, header and event, and can leave a stream
// whenever it wants to.

import { Agent, type Dispatcher, request } from 'undici';

export type HostOptions = {
  readonly session?: string;
  readonly version?: string;
  readonly capabilities?: object;
  readonly headers?: Record<string, string>;
};
export type Event = { readonly id: string; readonly message: any };

export type RawHost = Awaited<ReturnType<typeof rawHost>>;

/** Opens a session at the endpoint, or goes on with one that is given. */
export async function rawHost(url: string, options: HostOptions = {}) {
  const { version = '2025-11-25', capabilities = {} } = options;
  const agent = new Agent({ connections: 256 });
  let { session } = options;
  let opened: any;

  const headers = (more: Record<string, string> = {}) => ({
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...(session && { 'mcp-session-id': session, 'mcp-protocol-version': version }),
    ...options.headers,
    ...more,
  });
  const send = (method: Dispatcher.HttpMethod, body?: object, more: Record<string, string> = {}) =>
    request(url, {
      ...{ method, dispatcher: agent, headers: headers(more), bodyTimeout: 0 },
      ...(body && { body: JSON.stringify({ jsonrpc: '2.0', ...body }) }),
    });
  const get = async (lastEventId?: string) =>
    stream(await send('GET', undefined, lastEventId ? { 'last-event-id': lastEventId } : {}));

  if (!session) {
    const params = { protocolVersion: version, capabilities, clientInfo: { name: 'raw', version: '1' } };
    const { headers: given, body } = await send('POST', { id: 'open', method: 'initialize', params });
    session = String(given['mcp-session-id']);
    opened = ((await body.json()) as any).result;
    await (await send('POST', { method: 'notifications/initialized' })).body.dump();
  }

  return {
    session,
    opened,
    send,
    get,
    notify: async (method: string, params: object) => (await send('POST', { method, params })).statusCode,
    /** The answer to one request, however it comes. */
    async ask(method: string, params: object = {}, id: string | number = 1): Promise<any> {
      const response = await send('POST', { id, method, params });
      if (!String(response.headers['content-type']).startsWith('text/event-stream'))
        return { status: response.statusCode, ...((await response.body.json().catch(() => ({}))) as object) };
      for await (const { message } of stream(response).events) if ('id' in message) return { status: 200, ...message };
      throw new Error(`the stream of ${method} ended without an answer`);
    },
    /** One request whose stream of events is read as it comes. */
    begin: async (id: string | number, method: string, params: object) =>
      stream(await send('POST', { id, method, params })),
    close: () => agent.destroy(),
  };
}

export type RawStream = ReturnType<typeof stream>;

function stream({ statusCode: status, headers, body }: Dispatcher.ResponseData) {
  let last = '';
  async function* events(): AsyncGenerator<Event> {
    let text = '';
    for await (const chunk of body.setEncoding('utf8')) {
      text += chunk;
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        const field = (name: string) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(block)?.[1];
        last = field('id') ?? last;
        const data = field('data');
        if (data) yield { id: last, message: JSON.parse(data) };
      }
    }
  }
  return {
    ...{ status, headers, events: events() },
    /** The id of the last event that was read, the first empty one included. */
    get last() {
      return last;
    },
    leave: () => body.destroy(),
  };
}
