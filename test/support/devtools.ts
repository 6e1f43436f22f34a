// The little of Chromium's DevTools protocol that a test needs: open a page, run code in it, see what servers answered.

import { WebSocket } from 'ws';

/** What a server answered to a request of the page, also where the page itself was not let see it. */
export type Answer = { readonly method: string; readonly url: string; readonly status: number };

export type DevTools = {
  /** Loads a page. With `html` it is made up by the browser, whatever the address would have answered. */
  open(url: string, html?: string): Promise<void>;
  /** Runs the body of an async function in the page and returns what it returns. */
  run<Value>(body: string): Promise<Value>;
  readonly answers: Answer[];
  close(): void;
};

type Message = { id?: number; method?: string; params?: any; result?: any; error?: { message: string } };

export async function devTools(address: string): Promise<DevTools> {
  const socket = new WebSocket(address, { perMessageDeflate: false });
  const waiting = new Map<number, (message: Message) => void>();
  const listeners = new Map<string, (params: any) => void>();
  let count = 0;
  let sessionId: string | undefined;
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  socket.on('message', (data) => {
    const message: Message = JSON.parse(String(data));
    if (message.id !== undefined) waiting.get(message.id)?.(message);
    else listeners.get(message.method ?? '')?.(message.params);
  });

  const send = (method: string, params: object = {}): Promise<any> =>
    new Promise((resolve, reject) => {
      const id = ++count;
      waiting.set(id, ({ error, result }) => {
        waiting.delete(id);
        if (error) reject(new Error(`${method}: ${error.message}`));
        else resolve(result);
      });
      socket.send(JSON.stringify({ id, method, params, ...(sessionId && { sessionId }) }));
    });

  const { targetId } = await send('Target.createTarget', { url: 'about:blank' });
  ({ sessionId } = await send('Target.attachToTarget', { targetId, flatten: true }));
  const answers = watch(listeners);
  await send('Network.enable');
  await send('Page.enable');

  return {
    answers,
    async open(url, html) {
      if (html !== undefined) {
        listeners.set('Fetch.requestPaused', ({ requestId }) => {
          const responseHeaders = [{ name: 'Content-Type', value: 'text/html' }];
          const body = Buffer.from(html).toString('base64');
          void send('Fetch.fulfillRequest', { requestId, responseCode: 200, responseHeaders, body });
        });
        await send('Fetch.enable', { patterns: [{ urlPattern: url }] });
      }
      const loaded = new Promise((resolve) => listeners.set('Page.loadEventFired', resolve));
      const { errorText } = await send('Page.navigate', { url });
      if (errorText) throw new Error(`${url}: ${errorText}`);
      await loaded;
      await send('Fetch.disable');
      answers.length = 0;
    },
    async run(body) {
      const expression = `(async () => { ${body} })()`;
      const options = { awaitPromise: true, returnByValue: true };
      const { result, exceptionDetails } = await send('Runtime.evaluate', { expression, ...options });
      if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
      return result.value;
    },
    close: () => socket.terminate(),
  };
}

/** Statuses come apart from the requests, and are the raw ones: also of preflights and of what CORS keeps from the page. */
function watch(listeners: Map<string, (params: any) => void>): Answer[] {
  const answers: Answer[] = [];
  const requests = new Map<string, { method: string; url: string }>();
  const statuses = new Map<string, number>();
  const join = (id: string) => {
    const [request, status] = [requests.get(id), statuses.get(id)];
    if (request && status !== undefined) answers.push({ ...request, status });
  };
  listeners.set('Network.requestWillBeSent', ({ requestId, request: { method, url } }) => {
    requests.set(requestId, { method, url });
    join(requestId);
  });
  listeners.set('Network.responseReceivedExtraInfo', ({ requestId, statusCode }) => {
    statuses.set(requestId, statusCode);
    join(requestId);
  });
  listeners.set('Network.webSocketCreated', ({ requestId, url }) => requests.set(requestId, { method: 'GET', url }));
  listeners.set('Network.webSocketHandshakeResponseReceived', ({ requestId, response: { status } }) => {
    statuses.set(requestId, status);
    join(requestId);
  });
  listeners.set('Network.webSocketFrameError', ({ requestId, errorMessage }) => {
    const [, status] = /response code: (\d+)/.exec(errorMessage) ?? [];
    if (!status || statuses.has(requestId)) return;
    statuses.set(requestId, Number(status));
    join(requestId);
  });
  return answers;
}
