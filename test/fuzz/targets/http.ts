// The HTTP door, as bytes on its socket. An answer, a refusal and a hang-up are all good; what counts is who else is served.

import { connect, type Socket } from 'node:net';
import { HOST, type HttpRequest, httpRequests, SESSION } from '../arbitraries/http.ts';
import { variantOf } from '../arbitraries/messages.ts';
import { openSession } from '../house.ts';
import { within } from '../puppets/puppet.ts';
import type { Target } from '../target.ts';

const CONNECTIONS = 16;
/** A stream stays open, and half a request is waited for: neither is waited for here. */
const PATIENCE_MS = 40;

export const http: Target<HttpRequest> = {
  name: 'http',
  inputs: httpRequests,
  vary: (input, other, dice) => ({ ...input, headers: other.headers, body: variantOf(input.body, other.body, dice) }),
  batch: 200,
  async open({ d }) {
    const { host, hostname, port } = new URL(await d.http());
    const sockets = Array.from({ length: CONNECTIONS }, () => new Sender(hostname, Number(port)));
    return {
      async feed(inputs) {
        const { 'mcp-session-id': session = '' } = await openSession(`http://${host}/mcp/victim`);
        const left = [...inputs];
        await Promise.all(
          sockets.map(async (socket) => {
            for (let next = left.pop(); next; next = left.pop()) await socket.send(bytesOf(next, host, session));
          }),
        );
      },
      async [Symbol.asyncDispose]() {
        for (const socket of sockets) socket.close();
      },
    };
  },
};

function bytesOf({ method, path, headers, body, lack }: HttpRequest, host: string, session: string): Buffer {
  const shown = (value: string) => (value === HOST ? host : value === SESSION ? session : value);
  const lines = [`${method} ${path} HTTP/1.1`, ...headers.map(([name, value]) => `${name}: ${shown(value)}`)];
  const hasBody = method !== 'GET' && method !== 'HEAD';
  if (hasBody) lines.push(`Content-Length: ${Math.max(0, body.length + lack)}`);
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${hasBody ? body : ''}`, 'latin1');
}

/** One connection after the other: each is used until the door has had enough of it, or an answer does not end. */
class Sender {
  #socket: Socket | undefined;
  #closed: Promise<unknown> = Promise.resolve();
  readonly #host: string;
  readonly #port: number;

  constructor(host: string, port: number) {
    this.#host = host;
    this.#port = port;
  }

  async send(bytes: Buffer): Promise<void> {
    const socket = this.#open();
    const answered = new Promise<'answered'>((resolve) => {
      let answer = '';
      socket.removeAllListeners('data').on('data', (chunk) => {
        answer = `${answer}${chunk.toString('latin1')}`.slice(-100_000);
        if (isWhole(answer)) resolve('answered');
      });
    });
    socket.write(bytes);
    if ((await within(PATIENCE_MS, Promise.race([answered, this.#closed]))) !== 'answered') this.close();
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  #open(): Socket {
    if (this.#socket?.writable) return this.#socket;
    const socket = connect(this.#port, this.#host).on('error', () => {}); // 'close' follows
    this.#closed = new Promise((resolve) => socket.once('close', resolve));
    this.#socket = socket;
    return socket;
  }
}

function isWhole(answer: string): boolean {
  const end = answer.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const head = answer.slice(0, end);
  if (/^HTTP\/1\.1 (100|204|304)/.test(head)) return true;
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
  return length !== undefined ? answer.length >= end + 4 + Number(length) : answer.endsWith('\r\n0\r\n\r\n');
}
