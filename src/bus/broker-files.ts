// What the managed nats-server keeps in its directory: configuration, token, log, port and pid.
// The token stands in files of mode 0600 only; never in broker.json, in a log or on a command line.

import { createHash, randomBytes } from 'node:crypto';
import { constants, fstatSync, ftruncateSync, linkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openOwn, ownDirectory, readOwn, writeOwn } from '../files/own.ts';
import type { Identity } from '../store/process-identity.ts';

/** The port outlives the process, so that clients find a restarted server where they left it. */
export type Remembered = Partial<Identity> & { readonly port?: number; readonly pid?: number };

export type BrokerFiles = {
  readonly token: string;
  /** Tells our server from any other that happens to listen on our port. */
  readonly serverName: string;
  readonly configPath: string;
  readonly logPath: string;
  recall(): Remembered;
  remember(remembered: Remembered): void;
  /** Keeps the port only. */
  forgetPid(port: number): void;
  configure(port: number, maxPayloadBytes: number): void;
  /** A descriptor, which its taker closes. */
  openLog(): number;
  /** The pid that the server wrote itself; 0 if it wrote none. */
  writtenPid(): number;
};

const MAX_LOG_BYTES = 5 * 2 ** 20;

export function brokerFiles(directory: string): BrokerFiles {
  ownDirectory(directory);
  const path = (name: string) => join(directory, name);
  const token = persistedToken(path('token'));
  const serverName = `troupe-${createHash('sha256').update(token).digest('hex').slice(0, 16)}`;
  const logPath = path('nats-server.log');
  return {
    token,
    serverName,
    configPath: path('nats.conf'),
    logPath,
    recall: () => parse(readIfThere(path('broker.json'))),
    remember: (remembered) => writeOwn(path('broker.json'), JSON.stringify(remembered)),
    forgetPid(port) {
      rmSync(path('nats-server.pid'), { force: true });
      writeOwn(path('broker.json'), JSON.stringify({ port }));
    },
    // JSON is valid nats-server configuration, and its quoting has no surprises.
    configure(port, maxPayloadBytes) {
      ownDirectory(path('jetstream')); // nats-server would follow a link
      writeOwn(
        path('nats.conf'),
        JSON.stringify({
          server_name: serverName,
          listen: `127.0.0.1:${port}`,
          authorization: { token },
          max_payload: maxPayloadBytes,
          // The usual one, by which our own bounds are set.
          max_control_line: 4_096,
          write_deadline: '10s',
          pid_file: path('nats-server.pid'),
          jetstream: { store_dir: path('jetstream'), max_mem: 64 * 2 ** 20, max_file: 2 * 2 ** 30 },
        }),
      );
    },
    openLog() {
      const fd = openOwn(logPath, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT);
      if (fstatSync(fd).size > MAX_LOG_BYTES) ftruncateSync(fd);
      return fd;
    },
    writtenPid: () => Number(readIfThere(path('nats-server.pid'))) || 0,
  };
}

/** Made once: of two processes that make a token, both use that of the first. */
function persistedToken(path: string): string {
  const known = readIfThere(path);
  if (known) return known;
  const draft = `${path}.${randomBytes(8).toString('hex')}`;
  writeFileSync(draft, randomBytes(32).toString('base64url'), { mode: 0o600, flag: 'wx', flush: true });
  try {
    linkSync(draft, path);
  } catch {} // it exists: another process was first
  rmSync(draft);
  return readIfThere(path);
}

const readIfThere = (path: string): string => readOwn(path)?.toString('utf8') ?? '';

function parse(text: string): Remembered {
  try {
    return JSON.parse(text);
  } catch {
    return {}; // the first start, or a damaged file: a new port is found
  }
}
