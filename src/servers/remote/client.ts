// The HTTP client of one server: every request carries who we are, follows the server only within its own origin, and
// answers one challenge. What can go wrong before a response is of three kinds, and each is said as what it is.

import { Pool } from 'undici';
import type { RemoteServer } from '../../config/schema.ts';
import { sentence } from '../../protocol/failures.ts';
import { type Address, hostOf, pathWithin } from './address.ts';
import { type Authorizer, isChallenge } from './authorizer.ts';
import { type Exchange, exchange, type Head, type Message, type Reader } from './exchange.ts';

export type Trouble = {
  /** It never left; it left and nobody knows; it was not taken; it was not taken and a person must log in. */
  readonly kind: 'unsent' | 'broken' | 'refused' | 'unauthorized';
  readonly why: string;
};
export type Sending = Omit<Message, 'path' | 'headMs'> & {
  /** Elsewhere than the server's own address. */
  readonly path?: string;
  readonly headMs?: number;
  onHead(head: Head): Reader;
  onTrouble(trouble: Trouble): void;
};
export type Sent = { abort(): void; readonly wasSent: boolean };
export type Client = ReturnType<typeof createClient>;

const MAX_REDIRECTS = 3;
const MAX_IGNORED_BYTES = 64 * 1024;
const CONNECT_MS = 10_000;
/** They say how a message is carried, which is not for a configuration to say. */
const NOT_OURS_TO_SEND = /^(connection|keep-alive|transfer-encoding|content-length|upgrade|expect|te|trailer)$/;

export function createClient(address: Address, config: RemoteServer, authorizer: Authorizer) {
  const pool = new Pool(address.origin, { connect: { timeout: CONNECT_MS }, bodyTimeout: 0, headersTimeout: 0 });
  const running = new Set<Exchange>();
  const fixed = lowered(config.headers);

  function send(sending: Sending): Sent {
    const { method, body, onTrouble } = sending;
    let current: Exchange | undefined;
    let isOver = false;
    let wasSent = false;

    const give = (kind: Trouble['kind'], why: string): void => {
      if (isOver) return;
      isOver = true;
      onTrouble({ kind, why });
    };

    async function attempt(path: string, redirects: number, isSecond: boolean): Promise<void> {
      const credentials = await authorizer.headers();
      if (isOver) return;
      const headers = { ...fixed, ...lowered(credentials), ...sending.headers };
      const message: Message = { method, path, headers, headMs: sending.headMs ?? 0, ...(body && { body }) };
      const mine = exchange(pool, message, {
        onHead: (head) => over(mine, onHead(head)),
        onFailed(why, left) {
          running.delete(mine);
          give(left ? 'broken' : 'unsent', why);
        },
      });
      current = mine;
      running.add(mine);

      function onHead(head: Head): Reader {
        wasSent = true;
        if (head.status >= 300 && head.status < 400) return redirected(head);
        if (isChallenge(head.status, head.headers)) return challenged(head);
        const encoding = head.headers['content-encoding'] ?? 'identity';
        if (encoding === 'identity') return sending.onHead(head);
        give('refused', `it answered in the encoding ${String(encoding).slice(0, 20)}, which was not asked for`);
        return ignore({ abort: () => drop(mine) });
      }

      function redirected({ status, headers: { location } }: Head): Reader {
        const next = location === undefined ? undefined : pathWithin(address, location);
        // 301 to 303 make a GET of a POST, and a message would be lost on the way.
        const isKept = status === 307 || status === 308 || method === 'GET';
        if (location === undefined) give('refused', `it answered HTTP ${status} without saying where to`);
        else if (next === undefined)
          give('refused', `it redirects to ${hostOf(address, location)}, another origin; set its url to the final one`);
        else if (!isKept) give('refused', `it answers a ${method} with HTTP ${status}; set its url to the final one`);
        else if (redirects >= MAX_REDIRECTS) give('refused', 'it redirects in circles');
        else again(next, redirects + 1, isSecond);
        return ignore({ abort: () => drop(mine) });
      }

      function challenged({ status, headers: given }: Head): Reader {
        const refused = (): void => give('unauthorized', `it answered HTTP ${status}`);
        if (isSecond) refused();
        else
          authorizer.challenged({ status, headers: given }).then(
            (isMended) => (isMended ? again(path, redirects, true) : refused()),
            (error) => give('refused', sentence(error)), // which may pass, unlike the want of a login
          );
        return ignore({ abort: () => drop(mine) });
      }
    }

    function again(path: string, redirects: number, isSecond: boolean): void {
      attempt(path, redirects, isSecond).catch((error) => give('unsent', sentence(error)));
    }

    again(sending.path ?? address.path, 0, false);
    return {
      abort(): void {
        isOver = true;
        if (current) drop(current);
      },
      get wasSent() {
        return wasSent || current?.wasSent === true;
      },
    };
  }

  function drop(mine: Exchange): void {
    running.delete(mine);
    mine.abort();
  }

  /** Forgets the exchange when its body is over. */
  function over(mine: Exchange, reader: Reader): Reader {
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

  return {
    send,
    pause(): void {
      for (const each of running) each.pause();
    },
    resume(): void {
      for (const each of running) each.resume();
    },
    destroy(): void {
      for (const each of running) each.abort();
      running.clear();
      pool.destroy().catch(() => {}); // nobody is left who could be told
    },
  };
}

/** Reads a body to its end, so that the connection can be used again; a long one is not worth it. */
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
