// Where a browser comes back to after a login: a listener on the loopback, for one answer. The first that comes uses up the
// `state`, right or wrong; what comes after it is turned away.

import { timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { TroupeError } from '../../protocol/failures.ts';

export type Callback = {
  readonly redirectUrl: string;
  /** The parameters that came back. Rejects when `state` is not ours. */
  readonly answer: Promise<URLSearchParams>;
  /** Shows the browser what became of it, and closes. */
  finish(outcome: { readonly isDone: boolean; readonly message: string }): Promise<void>;
};

const PATH = '/callback';

/** `ports` are tried in turn; 0 is any. */
export async function openCallback(server: string, state: string, ports: readonly number[]): Promise<Callback> {
  let settle: (found: URLSearchParams | TroupeError) => void = () => {};
  const answer = new Promise<URLSearchParams>((resolve, reject) => {
    settle = (found) => (found instanceof TroupeError ? reject(found) : resolve(found));
  });
  answer.catch(() => {}); // whoever waits for it hears of it; nobody may wait any more
  let browser: ServerResponse | undefined;
  let isUsed = false;

  const http = createServer({ requestTimeout: 10_000, maxHeaderSize: 16_384 }, take);
  http.maxConnections = 8;
  const port = await listen(http, server, ports);

  function take(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', `http://127.0.0.1:${port}`);
    const isOurs = request.headers.host === url.host && request.method === 'GET' && url.pathname === PATH;
    if (!isOurs) return show(response, 404, server, 'There is nothing here.');
    if (isUsed) return show(response, 410, server, 'This login is over. Start another one.');
    isUsed = true;
    browser = response;
    const wrong = `the answer to the login at ${server} had a wrong state; nothing was kept, run troupe login again`;
    const isRight = isSame(url.searchParams.get('state') ?? '', state);
    settle(isRight ? url.searchParams : new TroupeError('unauthorized', wrong));
  }

  return {
    redirectUrl: `http://127.0.0.1:${port}${PATH}`,
    answer,
    async finish({ isDone, message }) {
      isUsed = true;
      if (browser) show(browser, isDone ? 200 : 400, server, message);
      http.close();
      http.closeIdleConnections();
      setTimeout(() => http.closeAllConnections(), 1_000).unref(); // the page is on its way
    },
  };
}

async function listen(
  http: ReturnType<typeof createServer>,
  server: string,
  ports: readonly number[],
): Promise<number> {
  for (const port of ports) {
    const isListening = await new Promise<boolean>((resolve) => {
      http.once('error', () => resolve(false));
      http.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (isListening) return (http.address() as AddressInfo).port;
  }
  const wanted = ports.join(', ');
  throw new TroupeError('unavailable', `port ${wanted} for the login at ${server} is taken; set oauth.redirectPort`);
}

function isSame(given: string, expected: string): boolean {
  const [left, right] = [Buffer.from(given), Buffer.from(expected)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** No script, no picture, nothing from elsewhere: the address of this page holds a code. */
function show(response: ServerResponse, status: number, server: string, message: string): void {
  const page = `<!doctype html><html lang="en"><meta charset="utf-8"><title>troupe</title>
<body style="font-family: sans-serif; margin: 4em auto; max-width: 32em">
<h1>${escaped(server)}</h1><p>${escaped(message)}</p></body></html>\n`;
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    connection: 'close',
  });
  response.end(page);
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escaped = (text: string): string => text.replace(/[&<>"']/g, (each) => ENTITIES[each] ?? '');
