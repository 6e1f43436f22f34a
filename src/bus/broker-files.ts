// What the managed nats-server keeps in its directory: configuration, token, log, port and pid.
// The token stands in files of mode 0600 only; never in broker.json, in a log or on a command line.

import { createHash, randomBytes } from 'node:crypto';
import { type FileHandle, link, mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Identity } from '../store/process-identity.ts';

/** The port outlives the process, so that clients find a restarted server where they left it. */
export type Remembered = Partial<Identity> & { readonly port?: number; readonly pid?: number };

export type BrokerFiles = {
  readonly token: string;
  /** Tells our server from any other that happens to listen on our port. */
  readonly serverName: string;
  readonly configPath: string;
  readonly logPath: string;
  recall(): Promise<Remembered>;
  remember(remembered: Remembered): Promise<void>;
  /** Keeps the port only. */
  forgetPid(port: number): Promise<void>;
  configure(port: number, maxPayloadBytes: number): Promise<void>;
  openLog(): Promise<FileHandle>;
  /** The pid that the server wrote itself; 0 if it wrote none. */
  writtenPid(): Promise<number>;
};

const MAX_LOG_BYTES = 5 * 2 ** 20;

export async function brokerFiles(directory: string): Promise<BrokerFiles> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const path = (name: string) => join(directory, name);
  const token = await persistedToken(path('token'));
  const serverName = `troupe-${createHash('sha256').update(token).digest('hex').slice(0, 16)}`;
  const logPath = path('nats-server.log');
  return {
    token,
    serverName,
    configPath: path('nats.conf'),
    logPath,
    recall: async () => parse(await readIfThere(path('broker.json'))),
    remember: (remembered) => writePrivate(path('broker.json'), JSON.stringify(remembered)),
    async forgetPid(port) {
      await rm(path('nats-server.pid'), { force: true });
      await writePrivate(path('broker.json'), JSON.stringify({ port }));
    },
    // JSON is valid nats-server configuration, and its quoting has no surprises.
    configure: (port, maxPayloadBytes) =>
      writePrivate(
        path('nats.conf'),
        JSON.stringify({
          server_name: serverName,
          listen: `127.0.0.1:${port}`,
          authorization: { token },
          max_payload: maxPayloadBytes,
          write_deadline: '10s',
          pid_file: path('nats-server.pid'),
          jetstream: { store_dir: path('jetstream'), max_mem: 64 * 2 ** 20, max_file: 2 * 2 ** 30 },
        }),
      ),
    async openLog() {
      const bytes = await stat(logPath).then(
        ({ size }) => size,
        () => 0,
      );
      return open(logPath, bytes > MAX_LOG_BYTES ? 'w' : 'a', 0o600);
    },
    writtenPid: async () => Number(await readIfThere(path('nats-server.pid'))) || 0,
  };
}

/** Made once: of two processes that make a token, both use that of the first. */
async function persistedToken(path: string): Promise<string> {
  const known = await readIfThere(path);
  if (known) return known;
  const draft = `${path}.${randomBytes(8).toString('hex')}`;
  await writeFile(draft, randomBytes(32).toString('base64url'), { mode: 0o600, flush: true });
  await link(draft, path).catch(() => {}); // it exists: another process was first
  await rm(draft);
  return readFile(path, 'utf8');
}

/** A new file each time: an old one may have the wrong mode, and a half-written one is worse than none. */
async function writePrivate(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomBytes(8).toString('hex')}`;
  await writeFile(draft, text, { mode: 0o600 });
  await rename(draft, path);
}

async function readIfThere(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}

function parse(text: string): Remembered {
  try {
    return JSON.parse(text);
  } catch {
    return {}; // the first start, or a damaged file: a new port is found
  }
}
