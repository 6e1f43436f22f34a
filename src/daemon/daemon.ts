// The composition root: the only place that gives the daemon's machine the real world. It takes its name on the
// state directory, lets the machine bring the parts up in order, and answers with a handle to wait for and to stop.

import { basename } from 'node:path';
import { createActor, waitFor } from 'xstate';
import { daemonMachine } from '../../machines/daemon.ts';
import { formatComplaint } from '../config/complaints.ts';
import type { Paths } from '../config/paths.ts';
import { secretsOf } from '../config/secrets.ts';
import { sentence, TroupeError } from '../protocol/failures.ts';
import { newMark } from '../servers/stdio/mark.ts';
import { acquireLock, type Lock } from '../store/lock.ts';
import { type Log, openLog } from '../telemetry/log.ts';
import { inSources } from '../telemetry/stack.ts';
import { announcer } from './announce.ts';
import { type LoadedConfig, readConfig } from './configuration.ts';
import { markerOf } from './leftovers.ts';
import { actorsOf, assemble } from './parts.ts';

export type DaemonOptions = {
  readonly paths: Paths;
  readonly env: NodeJS.ProcessEnv;
  readonly announce: (line: string) => void;
  /** What nobody who looks on may miss. */
  readonly complain: (line: string) => void;
  /** What `up --http` was given. */
  readonly http?: string;
};
export type DaemonHandle = {
  readonly ready: Promise<void>;
  /** The exit code: 0 after a stop, 1 when it could not start or broke. */
  readonly stopped: Promise<number>;
  /** Drains and stops; a second time, it stops at once. */
  stop(): void;
};

/** Longer than any server may take to close. */
const CLOSE_MS = 60_000;
/** Another daemon may hold this daemon's lock for a moment, while it ends what this one left running. */
const SWEEP_MS = 2_000;
/** How soon a daemon notices that its state directory is no longer its own. */
const HOME_MS = 1_000;

export async function runDaemon({ paths, env, announce, complain, http }: DaemonOptions): Promise<DaemonHandle> {
  const lock = takeName(paths);
  const { config, warnings, log } = beginOrRelease(paths, env, lock);
  log.secrets.learn(secretsOf(config, env));
  for (const warning of warnings) log.logger.warn(formatComplaint(warning));
  const assembly = assemble({
    paths,
    env,
    log,
    config,
    mark: await newMark(markerOf(paths)),
    say: announcer(announce),
    ...(http !== undefined && { http }),
    stop: () => actor.send({ type: 'stop' }),
    crash: (why) => actor.send({ type: 'crashed', why }),
    stateOf: () => stateOf(actor.getSnapshot().value),
  });
  const actor = createActor(daemonMachine.provide({ actors: actorsOf(assembly) }), { input: { closeMs: CLOSE_MS } });
  actor.subscribe({ error: (error) => log.logger.fatal(sentence(error)) });
  const fault = crashOnBugs(log.logger, (why) => actor.send({ type: 'crashed', why }));
  actor.start();
  const home = watchHome(lock, () => {
    const why = `${paths.state} was removed or replaced under the daemon (pid ${process.pid}), which ends; troupe up starts anew`;
    log.logger.error(why);
    complain(why);
    actor.send({ type: 'crashed', why });
  });

  const stopped = waitFor(actor, (state) => state.status !== 'active').then(
    ({ context }) => end(context.why),
    (error) => end(sentence(error)),
  );
  const ready = waitFor(actor, (state) => state.matches('running') || state.status !== 'active').then((state) => {
    if (state.status !== 'active') throw new TroupeError('unavailable', state.context.why || 'it was stopped');
  });
  ready.catch(() => {}); // without a listener the end is learnt from `stopped`

  function end(why: string): number {
    fault.dispose();
    clearInterval(home);
    if (why) log.logger.fatal(why);
    if (why) announce(`troupe stopped: ${log.mask(why.replace(/^\w*Error: /, ''))}`);
    assembly.built.bus?.abandon(); // a daemon that ends without a goodbye must not leave its nats-server behind either
    log.logger.info('stopped');
    log.close();
    lock.release();
    return why ? 1 : 0;
  }

  let stops = 0;
  return { ready, stopped, stop: () => actor.send({ type: stops++ === 0 ? 'stop' : 'abort' }) };
}

/** A daemon that cannot read its configuration, or may not write its log, gives its lock back. */
function beginOrRelease(paths: Paths, env: NodeJS.ProcessEnv, lock: Lock): LoadedConfig & { readonly log: Log } {
  try {
    const loaded = readConfig(paths, env);
    return { ...loaded, log: openLog(paths.logs, loaded.config.logLevel, basename(paths.logFile)) };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Two daemons of the same name would each believe that the servers are theirs. */
function takeName({ state, lock: name, instance }: Paths): Lock {
  const lock = acquireLock(state, name, SWEEP_MS);
  if (lock) return lock;
  const who = instance === undefined ? 'a troupe daemon' : `the troupe daemon "${instance}"`;
  throw new TroupeError('busy', `${who} already runs on ${state}; troupe status shows it`);
}

/** Where the directory is no longer the one that this daemon locked, another daemon can start, and neither knows of the other. */
function watchHome(lock: Lock, onGone: () => void): NodeJS.Timeout {
  const watching = setInterval(() => {
    if (lock.isInPlace()) return;
    clearInterval(watching);
    onGone();
  }, HOME_MS).unref();
  return watching;
}

/** A map that cannot be read must not keep a crash from being told. */
function stackOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || typeof error.stack !== 'string') return undefined;
  try {
    return inSources(error.stack);
  } catch {
    return error.stack;
  }
}

/** An uncaught throw is a bug of troupe: it is logged, everything is closed in order, and the exit code says so. */
function crashOnBugs(logger: { fatal(value: object, text: string): void }, crash: (why: string) => void) {
  const onFault = (error: unknown) => {
    logger.fatal({ stack: stackOf(error) }, sentence(error));
    crash(`a bug in troupe: ${sentence(error)}`);
  };
  process.on('uncaughtException', onFault).on('unhandledRejection', onFault);
  return {
    dispose: () => process.off('uncaughtException', onFault).off('unhandledRejection', onFault),
  };
}

const stateOf = (value: unknown): string =>
  typeof value === 'string' ? value : String(Object.keys(value as object)[0]);
