// A client of NATS that is nothing but a socket: it sends messages byte for byte, also such as no client library would send.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { BusMessage } from '../fuzz/arbitraries/bus.ts';

export type RawNats = AsyncDisposable & {
  publish(message: BusMessage): void;
  /** Resolves when the broker has handed on all that was published; a broker that cuts us off is connected to again. */
  flush(): Promise<void>;
  /** How often the broker has cut us off. */
  readonly cuts: number;
};

const NOTHING = Buffer.alloc(0);

export async function rawNats(port: number, token?: string): Promise<RawNats> {
  const hello = { headers: true, no_responders: true, verbose: false, ...(token && { auth_token: token }) };
  let cuts = 0;
  let socket = await open();

  async function open(): Promise<Socket> {
    const made = connect(port, '127.0.0.1');
    made.on('error', () => {}); // a cut shows when the broker is asked to answer
    await once(made, 'connect');
    made.write(`CONNECT ${JSON.stringify(hello)}\r\n`);
    return made;
  }

  /** Nothing is subscribed to, so what comes back is an answer to this ping, or a complaint. */
  const answered = (): Promise<boolean> =>
    new Promise((resolve) => {
      const listener = (chunk: Buffer): void => {
        if (chunk.includes('PONG')) settle(true);
      };
      const onClose = (): void => settle(false);
      const settle = (isThere: boolean): void => {
        socket.off('data', listener).off('close', onClose);
        resolve(isThere);
      };
      socket.on('data', listener).on('close', onClose);
      if (socket.destroyed) settle(false);
      else socket.write('PING\r\n');
    });

  return {
    get cuts() {
      return cuts;
    },
    publish({ subject, reply, headers, body }) {
      const to = reply ? Buffer.concat([subject, Buffer.from(' '), reply]) : subject;
      const size = body.length + (headers?.length ?? 0);
      const sizes = headers ? `${headers.length} ${size}` : `${size}`;
      const line = [Buffer.from(headers ? 'HPUB ' : 'PUB '), to, Buffer.from(` ${sizes}\r\n`)];
      socket.write(Buffer.concat([...line, headers ?? NOTHING, body, Buffer.from('\r\n')]));
    },
    async flush() {
      if (await answered()) return;
      cuts += 1;
      socket = await open();
    },
    async [Symbol.asyncDispose]() {
      socket.destroy();
    },
  };
}
