// The command line as a process, in a state directory of its own, and our own end of the control socket to talk to.
// `control` is no fake of NATS or MCP: it is the protocol between two parts of troupe, played from a script.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../dist/bundle/troupe.cjs', import.meta.url));

export type Finished = { readonly code: number | null; readonly stdout: string; readonly stderr: string };
export type Running = { readonly child: ChildProcess; readonly stdout: () => string; readonly done: Promise<Finished> };

/** A request as it came, with the raw line to look at its bytes. */
export type Asked = { readonly id?: number; readonly method: string; readonly params: any; readonly line: string };
/** The raw JSON of a result, or an error object, or nothing for no answer. */
export type Reply = { result: string } | { error: object } | undefined;

export type Workplace = AsyncDisposable & {
  readonly directory: string;
  readonly config: string;
  readonly run: (...words: string[]) => Promise<Finished>;
  readonly start: (...words: string[]) => Running;
  /** Listens on the control socket; every line that comes is kept. */
  readonly control: (answer: (asked: Asked, socket: Socket) => Reply) => Promise<Asked[]>;
};

export function workplace(more: NodeJS.ProcessEnv = {}): Workplace {
  const directory = mkdtempSync(join(tmpdir(), 'troupe-cli-'));
  const config = join(directory, 'troupe.json');
  const { PATH, TMPDIR } = process.env;
  const env = { PATH, TMPDIR, HOME: directory, TROUPE_STATE: directory, TROUPE_CONFIG: config, ...more };
  const running = new Set<ChildProcess>();
  const sockets = new Set<Socket>();
  let server: Server | undefined;

  const start: Workplace['start'] = (...words) => {
    const child = spawn(process.execPath, [MAIN, ...words], { env, cwd: directory, stdio: ['ignore', 'pipe', 'pipe'] });
    running.add(child);
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text));
    const done = new Promise<Finished>((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
    return { child, stdout: () => stdout, done };
  };
  const control: Workplace['control'] = async (answer) => {
    const asked: Asked[] = [];
    server = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => {}); // the client left; that is its right
      const lines = createInterface(socket).on('error', () => {}); // it hears of the socket's errors too
      lines.on('line', (line) => {
        const message = { params: {}, ...JSON.parse(line), line };
        asked.push(message);
        const reply = answer(message, socket);
        const [kind, value] =
          reply && 'result' in reply ? ['result', reply.result] : ['error', JSON.stringify(reply?.error)];
        if (reply) socket.write(`{"jsonrpc":"2.0","id":${message.id},"${kind}":${value}}\n`);
      });
    });
    await new Promise<void>((resolve) => server?.listen(join(directory, 'control.sock'), resolve));
    return asked;
  };
  return {
    directory,
    config,
    start,
    control,
    run: (...words) => start(...words).done,
    async [Symbol.asyncDispose]() {
      for (const child of running) child.kill('SIGKILL');
      for (const socket of sockets) socket.destroy();
      server?.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
