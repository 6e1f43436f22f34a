// The HTTP client of one server: every request carries our credentials, follows redirects within the server's own origin only,
// and answers one challenge. What goes wrong before a response is one of four kinds of trouble.

import { Pool } from 'undici';
import { sentence } from '../../protocol/failures.ts';
import { type Address, hostOf, pathWithin } from './address.ts';
import { type Authorizer, isChallenge } from './authorizer.ts';
import { type Exchange, exchange, type Head, type Message, type Reader } from './exchange.ts';

export type Trouble = {
  /** Never sent · sent, outcome unknown · sent and not taken · not taken because a person must log in. */
  readonly kind: 'unsent' | 'broken' | 'refused' | 'unauthorized';
  readonly why: string;
};
export type Sending = Omit<Message, 'path' | 'headMs'> & {
  /** Instead of the path of the server's address. */
  readonly path?: string;
  readonly headMs?: number;
  onHead(head: Head): Reader;
  onTrouble(trouble: Trouble): void;
};
export type Sent = { abort(): void; readonly wasSent: boolean };

const MAX_REDIRECTS = 3;
const MAX_IGNORED_BYTES = 64 * 1024;
const CONNECT_MS = 10_000;
/** Headers about the connection itself, which a configuration must not set. */
const NOT_OURS_TO_SEND = /^(connection|keep-alive|transfer-encoding|content-length|upgrade|expect|te|trailer)$/;

export class Client {
  readonly #ports: Ports;

  constructor(address: Address, headers: Record<string, string>, authorizer: Authorizer) {
    this.#ports = {
      address,
      authorizer,
      pool: new Pool(address.origin, { connect: { timeout: CONNECT_MS }, bodyTimeout: 0, headersTimeout: 0 }),
      headers: lowered(headers),
      running: new Set(),
    };
  }

  send(sending: Sending): Sent {
    return new Delivery(this.#ports, sending);
  }

  pause(): void {
    for (const each of this.#ports.running) each.pause();
  }

  resume(): void {
    for (const each of this.#ports.running) each.resume();
  }

  destroy(): void {
    const { running, pool } = this.#ports;
    for (const each of running) each.abort();
    running.clear();
    pool.destroy().catch(() => {}); // its requests were aborted already
  }
}

type Ports = {
  readonly address: Address;
  readonly authorizer: Authorizer;
  readonly pool: Pool;
  /** Those of the configuration, and the daemon's name. */
  readonly headers: Record<string, string>;
  readonly running: Set<Exchange>;
};
/** One try to send the message: a redirect or a challenge leads to the next. */
type Attempt = { readonly path: string; readonly redirects: number; readonly isSecond: boolean };

/** One message on its way, through redirects and a challenge. */
class Delivery implements Sent {
  readonly #ports: Ports;
  readonly #sending: Sending;
  #current: Exchange | undefined;
  #isOver = false;
  #wasSent = false;

  constructor(ports: Ports, sending: Sending) {
    this.#ports = ports;
    this.#sending = sending;
    this.#start({ path: sending.path ?? ports.address.path, redirects: 0, isSecond: false });
  }

  get wasSent(): boolean {
    return this.#wasSent || this.#current?.wasSent === true;
  }

  abort(): void {
    this.#isOver = true;
    if (this.#current) this.#drop(this.#current);
  }

  #start(attempt: Attempt): void {
    this.#attempt(attempt).catch((error) => this.#give('unsent', sentence(error)));
  }

  async #attempt(attempt: Attempt): Promise<void> {
    const { authorizer, pool, headers: fixed, running } = this.#ports;
    const { method, body, headers: own, headMs = 0 } = this.#sending;
    const credentials = await authorizer.headers();
    if (this.#isOver) return;
    // Not by spreads, which take several times as long, for every request.
    const headers = Object.assign({}, fixed, lowered(credentials), own);
    const mine = exchange(
      pool,
      { method, path: attempt.path, headers, headMs, ...(body && { body }) },
      {
        onHead: (head) => this.#forgetting(mine, this.#onHead(attempt, mine, head)),
        onFailed: (why, left) => {
          running.delete(mine);
          this.#give(left ? 'broken' : 'unsent', why);
        },
      },
    );
    this.#current = mine;
    running.add(mine);
  }

  #onHead(attempt: Attempt, mine: Exchange, head: Head): Reader {
    this.#wasSent = true;
    const encoding = head.headers['content-encoding'] ?? 'identity';
    if (head.status >= 300 && head.status < 400) this.#redirected(attempt, head);
    else if (isChallenge(head.status, head.headers)) this.#challenged(attempt, head);
    else if (encoding === 'identity') return this.#sending.onHead(head);
    else this.#give('refused', `it answered in the encoding ${String(encoding).slice(0, 20)}, which was not asked for`);
    return ignore({ abort: () => this.#drop(mine) });
  }

  #redirected({ redirects, isSecond }: Attempt, { status, headers: { location } }: Head): void {
    const { address } = this.#ports;
    const { method } = this.#sending;
    if (location === undefined) return this.#give('refused', `it answered HTTP ${status} without saying where to`);
    const path = pathWithin(address, location);
    if (path === undefined) {
      const host = hostOf(address, location);
      return this.#give('refused', `it redirects to ${host}, another origin; set its url to the final one`);
    }
    // 301 to 303 make a GET of a POST, and its message would be lost.
    const keepsMethod = status === 307 || status === 308 || method === 'GET';
    if (!keepsMethod)
      return this.#give('refused', `it answers a ${method} with HTTP ${status}; set its url to the final one`);
    if (redirects >= MAX_REDIRECTS) return this.#give('refused', 'it redirects in circles');
    this.#start({ path, redirects: redirects + 1, isSecond });
  }

  #challenged(attempt: Attempt, { status, headers }: Head): void {
    const refused = (): void => this.#give('unauthorized', `it answered HTTP ${status}`);
    if (attempt.isSecond) return refused();
    this.#ports.authorizer.challenged({ status, headers }).then(
      (isMended) => (isMended ? this.#start({ ...attempt, isSecond: true }) : refused()),
      (error) => this.#give('refused', sentence(error)), // a renewal that failed for now, unlike a missing login
    );
  }

  #give(kind: Trouble['kind'], why: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#sending.onTrouble({ kind, why });
  }

  #drop(mine: Exchange): void {
    this.#ports.running.delete(mine);
    mine.abort();
  }

  /** Forgets the exchange when its body is read. */
  #forgetting(mine: Exchange, reader: Reader): Reader {
    const { running } = this.#ports;
    return {
      onChunk: reader.onChunk,
      onEnd() {
        running.delete(mine);
        reader.onEnd();
      },
      onBroken(why) {
        running.delete(mine);
        reader.onBroken(why);
      },
    };
  }
}

/** Reads a body to its end, so that the connection can be used again; a long body is aborted. */
export function ignore(exchanged: { abort(): void }, onEnd: () => void = () => {}): Reader {
  let bytes = 0;
  return {
    onChunk(chunk) {
      bytes += chunk.length;
      if (bytes <= MAX_IGNORED_BYTES) return;
      exchanged.abort();
      onEnd();
    },
    onEnd,
    onBroken: onEnd,
  };
}

const lowered = (headers: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers)
      .map(([name, value]) => [name.toLowerCase(), value] as const)
      .filter(([name]) => !NOT_OURS_TO_SEND.test(name)),
  );
