// The nats-server that troupe runs itself: on the loopback, behind a token, always on the same port of its directory.
// It outlives a killed daemon, and the next daemon adopts it, so that clients keep their connections. Daemons on the same
// state directory share it, and the last one ends it.

import { setTimeout as wait } from 'node:timers/promises';
import { TroupeError } from '../protocol/failures.ts';
import { acquireLock, isHeld, type Lock, locksIn } from '../store/lock.ts';
import { type BrokerFiles, brokerFiles, type Remembered } from './broker-files.ts';
import { answers, end, identify, kill, type Living, launch, unusedPort } from './broker-process.ts';

export type Broker = {
  readonly url: string;
  readonly token: string;
  readonly pid: number;
  readonly startTime?: string;
  readonly adopted: boolean;
  /** Stops using the server, and ends it if no other daemon uses it. */
  stop(): Promise<void>;
  /** The same at once, by SIGKILL. */
  abandon(): void;
};
export type BrokerOptions = {
  binary: string;
  directory: string;
  /** The name of the lock by which this daemon uses the server. */
  user?: string;
  maxPayloadBytes: number;
  /** Called once when the server ends without having been stopped. */
  onExit: (why: string) => void;
};

/** A server that another daemon uses is not ended because of one slow answer. */
const PATIENT_ATTEMPTS = 3;

export async function startBroker(options: BrokerOptions): Promise<Broker> {
  const files = brokerFiles(options.directory);
  const users = brokerUsers(options.directory);
  const name = options.user ?? 'daemon';
  const { living, adopted, user } = await users.inTurn(async () => {
    const found = await findOrStart(options, files, users.isUsed(name) ? PATIENT_ATTEMPTS : 1);
    return { ...found, user: users.enter(name) };
  });
  const { port, pid, startTime, ended } = living;
  let isStopping = false;
  void ended.then(() => {
    user?.release();
    if (!isStopping) options.onExit(`nats-server ended unexpectedly; ${files.logPath} says why.`);
  });
  return {
    url: `nats://127.0.0.1:${port}`,
    token: files.token,
    pid,
    startTime,
    adopted,
    async stop() {
      isStopping = true;
      if (user && !user.isInPlace()) {
        user.release();
        if (!isAdopted(files, living)) await end(living);
        return;
      }
      await users.inTurn(async () => {
        user?.release();
        if (users.isUsed()) return;
        await end(living);
        forgetPid(files, port);
      });
    },
    abandon() {
      isStopping = true;
      const isHomeless = user !== undefined && !user.isInPlace();
      user?.release();
      if (isHomeless) return isAdopted(files, living) ? undefined : kill(pid, 'SIGKILL');
      users.inTurnNow(() => {
        if (!users.isUsed()) kill(pid, 'SIGKILL');
      });
    },
  };
}

/**
 * Where the directory was taken away, the locks of other users are out of sight; what is at its path now is a successor's, and
 * must not even be made. A server that is noted there has been adopted with a copy of the directory.
 */
function isAdopted(files: BrokerFiles, { pid, startTime }: Living): boolean {
  try {
    const noted = files.recall();
    return noted.pid === pid && noted.startTime === startTime;
  } catch {
    return false; // what is there is not ours
  }
}

function forgetPid(files: BrokerFiles, port: number): void {
  try {
    files.forgetPid(port);
  } catch {} // a stale pid does no harm: its start time is checked
}

async function findOrStart(options: BrokerOptions, files: BrokerFiles, attempts: number) {
  const remembered = files.recall();
  const found = await findOurs(files, remembered, attempts);
  const living = found ?? (await startNew(options, files, remembered.port));
  const { port, pid, startTime, bootId } = living;
  files.remember({ port, pid, startTime, bootId });
  return { living, adopted: found !== undefined };
}

/** Ends the nats-server of a daemon that was killed. True if there was one. */
export function stopLeftBroker(directory: string): Promise<boolean> {
  const users = brokerUsers(directory);
  return users.inTurn(async () => !users.isUsed() && endLeft(directory));
}

async function endLeft(directory: string): Promise<boolean> {
  const files = brokerFiles(directory);
  const { port, pid, ...identity } = files.recall();
  if (!port) return false;
  const left = (pid && (await identify(port, pid, identity))) || (await unnoted(port, files));
  if (!left) return false;
  await end(left);
  files.forgetPid(left.port);
  return true;
}

/** The daemon may have died before it wrote down the pid; the server writes it itself, and must answer to our token. */
async function unnoted(port: number, files: BrokerFiles): Promise<Living | undefined> {
  const found = await identify(port, files.writtenPid());
  return found && (await answers(port, files)) ? found : undefined;
}

/** The server that broker.json remembers, if it runs and answers. It is identified first: a stranger on our port learns no token. */
async function findOurs(files: BrokerFiles, remembered: Remembered, attempts: number): Promise<Living | undefined> {
  const { port, pid } = remembered;
  if (!port) return undefined;
  // The daemon may have died before it wrote down the pid; the server writes it itself.
  const ours = pid ? await identify(port, pid, remembered) : await identify(port, files.writtenPid());
  for (let attempt = 0; ours && attempt < attempts; attempt++) if (await answers(port, files)) return ours;
  if (ours && pid) await end(ours); // two servers must never share one JetStream store
  return undefined;
}

async function startNew(options: BrokerOptions, files: BrokerFiles, preferred: number | undefined): Promise<Living> {
  for (const candidate of [preferred, undefined, undefined]) {
    const port = (candidate && (await unusedPort(candidate))) || (await unusedPort(0));
    if (!port) continue;
    files.configure(port, options.maxPayloadBytes);
    files.forgetPid(port);
    const living = await launch(options.binary, files, port);
    if (living) return living; // else another process took the port, or the server cannot start at all
  }
  throw new TroupeError('unavailable', `nats-server does not start; ${files.logPath} says why.`);
}

// ── Users ────────────────────────────────────────────────────────────────────
// Every daemon that uses the nats-server of its state directory holds a lock of its own meanwhile. Starting and ending it is
// done under another lock, the turn: so two daemons never start it at once, and only the last one ends it.

type BrokerUsers = {
  /** Runs the work while no other daemon has the turn. */
  inTurn<Result>(work: () => Promise<Result>): Promise<Result>;
  /** The same without a promise, for a process that ends; the work is left out when the turn cannot be had in a second. */
  inTurnNow(work: () => void): void;
  /** Undefined when a daemon of that name uses the server already. */
  enter(name: string): Lock | undefined;
  /** Whether any daemon uses the server, beside the one of that name. */
  isUsed(beside?: string): boolean;
};

/** A start takes up to three attempts, each with a deadline of its own. */
const PATIENCE_MS = 45_000;
const POLL_MS = 25;
const HURRY_MS = 1_000;
const TURN = 'turn';
const USERS = 'daemon';

function brokerUsers(directory: string): BrokerUsers {
  async function turn(): Promise<Lock> {
    const deadline = performance.now() + PATIENCE_MS;
    while (performance.now() < deadline) {
      const lock = acquireLock(directory, TURN, 0);
      if (lock) return lock;
      await wait(POLL_MS);
    }
    const message = `another troupe daemon has been starting the nats-server in ${directory} for too long; end it.`;
    throw new TroupeError('busy', message);
  }

  return {
    async inTurn(work) {
      const lock = await turn();
      try {
        return await work();
      } finally {
        lock.release();
      }
    },
    inTurnNow(work) {
      const lock = acquireLock(directory, TURN, HURRY_MS);
      if (lock) work();
      lock?.release();
    },
    enter: (name) => acquireLock(directory, name),
    isUsed: (beside) => locksIn(directory, USERS).some((name) => name !== beside && isHeld(directory, name)),
  };
}
