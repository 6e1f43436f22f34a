// More daemons on the state directory of a first one, each a process that can be killed, stopped and started again with
// another environment: `await using b = await beside(d, 'b')`.

import { join } from 'node:path';
import { execa, type ResultPromise } from 'execa';
import { askControl } from './control.ts';
import { type Daemon, MAIN, type ServerStatus } from './daemon.ts';
import { eventually } from './eventually.ts';

export type BesideStatus = {
  readonly daemon: { readonly pid: number; readonly state: string };
  readonly bus: { readonly state: string; readonly pid?: number };
  readonly http: { readonly state: string; readonly url: string | null };
  readonly store: { readonly state: string; readonly message: string };
  readonly servers: ServerStatus[];
};
export type Beside = Awaited<ReturnType<typeof beside>>;

type Options = {
  readonly env?: Record<string, string>;
  /** What `up --http` is given; a free port unless said otherwise. */
  readonly http?: string;
};

export async function beside(d: Daemon, instance: string, { env = {}, http = '0' }: Options = {}) {
  const socket = join(d.state, `control-${instance}.sock`);
  const ask = <Answer>(method: string, params: object = {}) => askControl<Answer>(socket, method, params);
  let child: ResultPromise | undefined;

  /** Resolves when it runs and each of its servers has left `opening`, or with false when it died on the way. */
  async function start(more: Record<string, string> = {}): Promise<boolean> {
    const started = execa(process.execPath, [MAIN, 'up', '--instance', instance, '--http', http], {
      ...{ env: { ...d.env, ...env, ...more }, extendEnv: false, reject: false, all: true },
    }) as unknown as ResultPromise;
    child = started;
    let hasEnded = false;
    void started.then(() => {
      hasEnded = true;
    });
    await eventually(async () => hasEnded || isReady(await ask<BesideStatus>('status')), 180_000);
    return !hasEnded;
  }

  if (!(await start())) throw new Error(`the daemon ${instance} ended at once`);
  return {
    ...{ instance, socket, ask, start },
    status: () => ask<BesideStatus>('status'),
    cli: (...words: string[]) => d.cli(...words, '--instance', instance),
    get pid() {
      return child?.pid as number;
    },
    get isUp() {
      return child !== undefined && child.exitCode === null && child.signalCode === null;
    },
    signal: (signal: NodeJS.Signals) => void child?.kill(signal),
    /** Resolves when its process is gone: with nothing if it was killed, with its last words if it went by itself. */
    async ended(): Promise<string | undefined> {
      const { signal, all, exitCode } = await (child as ResultPromise<{ all: true }>);
      return signal === 'SIGKILL' ? undefined : `exit code ${exitCode}: ${all}`;
    },
    async kill(): Promise<void> {
      child?.kill('SIGKILL');
      await child;
    },
    async [Symbol.asyncDispose]() {
      child?.kill('SIGCONT');
      child?.kill('SIGKILL');
      await child;
    },
  };
}

const isReady = ({ daemon, bus, servers }: BesideStatus): boolean =>
  daemon.state === 'running' && bus.state === 'online' && servers.every(({ state }) => state !== 'opening');
