// The bus as the rest of the daemon sees it: where NATS is, whether we are on it, and a way to be told when we are.
// It owns two actors: the broker, which finds or runs a nats-server, and the connection to it.

import type { ConnectionOptions, NatsConnection } from 'nats';
import type { Logger } from 'pino';
import { createActor, fromCallback, fromPromise, type SnapshotFrom, waitFor } from 'xstate';
import { type BrokerEvent, brokerMachine, type Located, type ToProcess } from '../../machines/broker.ts';
import { busMachine } from '../../machines/bus.ts';
import type { Config } from '../config/schema.ts';
import { sentence, TroupeError } from '../protocol/failures.ts';
import { fetchNatsServer, findNatsServer } from './acquire.ts';
import { busConnection } from './connection.ts';
import { type ChosenBus, natsFromEnvironment } from './environment.ts';
import { type Broker, startBroker } from './managed.ts';

export type BusOptions = {
  readonly name: string;
  readonly env: NodeJS.ProcessEnv;
  readonly directory: string;
  /** Which daemon of the state directory we are: they share the nats-server. */
  readonly user: string;
  readonly cache: string;
  readonly nats: Config['nats'];
  readonly logger: Logger;
  /** There is no nats-server on this machine yet: what is done about it, for people. */
  readonly onFetch: (what: string) => void;
  readonly onConnection: (nc: NatsConnection) => void;
  readonly onReconnect: (nc: NatsConnection) => void;
  readonly beforeDrain: () => Promise<void>;
  readonly onCrash: (why: string) => void;
};

export type Bus = ReturnType<typeof createBus>;

const BROKER = { backoffMs: [100, 500, 2_000, 10_000], retryMs: 60_000, closeMs: 8_000, settleMs: 10_000 };
const CONNECTION = { retryMs: 1_000, drainMs: 5_000 };
const FIRST_MS = 20_000;

export function createBus(options: BusOptions) {
  const { env, nats, logger, onCrash } = options;
  const chosen = natsFromEnvironment(nats.url ? { ...env, NATS_URL: env.NATS_URL || nats.url } : env);
  let managed: Broker | undefined;
  let isAbandoned = false;

  const fetching = (what: string): void => {
    logger.info(what);
    options.onFetch(what);
  };

  const locate = fromPromise<Located>(async () => {
    if (chosen) {
      connection.send({ type: 'address', url: chosen.servers.join(',') });
      return { binary: undefined };
    }
    const where = { env, cacheDir: options.cache };
    const found = (await findNatsServer(where)) ?? (await fetchNatsServer({ ...where, onProgress: fetching }));
    return { binary: found.path };
  });

  const server = fromCallback<ToProcess, { binary: string }>(({ input, receive, sendBack }) => {
    const tell = sendBack as (event: BrokerEvent) => void;
    const starting = startBroker({
      ...{ binary: input.binary, directory: options.directory, user: options.user },
      maxPayloadBytes: nats.maxPayloadBytes,
      onExit: (why) => tell({ type: 'process.exited', why }),
    });
    starting.then(
      (broker) => {
        if (isAbandoned) return broker.abandon();
        managed = broker;
        tell({ type: 'process.ready' });
        connection.send({ type: 'address', url: broker.url });
      },
      (error) => tell({ type: 'process.exited', why: sentence(error) }),
    );
    receive(() => {
      void starting
        .then((broker) => broker.stop())
        .catch(() => {}) // it never started
        .then(() => tell({ type: 'process.exited', why: 'it was stopped' }));
    });
  });

  const broker = createActor(brokerMachine.provide({ actors: { locate, process: server } }), { input: BROKER });
  const connection = createActor(
    busMachine.provide({ actors: { connection: busConnection({ ...options, optionsOf }) } }),
    { input: CONNECTION },
  );
  broker.subscribe({ error: (error) => onCrash(sentence(error)) });
  connection.subscribe({ error: (error) => onCrash(sentence(error)) });
  report(connection, 'bus', logger);
  report(broker, 'broker', logger);

  function optionsOf(url: string): ConnectionOptions {
    if (chosen) return { servers: chosen.servers, ...chosen.options };
    return { servers: url, ...(managed && { token: managed.token }) };
  }

  return {
    start(): void {
      connection.start();
      broker.start();
      broker.send({ type: 'start' });
    },
    /** Resolves when we are on the bus, or when it is plain that we shall not be for a while. Never rejects. */
    async tried(): Promise<void> {
      const isTried = (state: SnapshotFrom<typeof busMachine>) =>
        state.matches({ linked: 'online' }) || state.matches('parted');
      const connected = waitFor(connection, isTried, { timeout: FIRST_MS });
      const hopeless = waitFor(broker, (state) => state.matches('missing'), { timeout: FIRST_MS });
      await Promise.race([connected, hopeless]).catch(() =>
        logger.warn('the bus is not there yet; going on without it'),
      );
      void Promise.allSettled([connected, hopeless]);
    },
    async leave(): Promise<void> {
      connection.send({ type: 'close' });
      await waitFor(connection, (state) => state.status === 'done');
      broker.send({ type: 'stop' });
      await waitFor(broker, (state) => state.status === 'done');
    },
    /** No goodbye: the daemon is told to end at once, and its nats-server must not outlive the last. */
    abandon(): void {
      if (broker.getSnapshot().status !== 'active') return; // it said goodbye, and its pid may be another's by now
      isAbandoned = true;
      broker.stop(); // or it would mend what ends here, and start the next one
      managed?.abandon();
    },
    status() {
      const leaf = leafOf(connection.getSnapshot().value);
      const why = connection.getSnapshot().context.why || broker.getSnapshot().context.why;
      return {
        // Trying again after a failure is still being offline.
        state: leaf === 'connecting' && why ? 'offline' : (STATES[leaf] ?? 'offline'),
        url: chosen ? chosen.servers.join(',') : (managed?.url ?? ''),
        managed: chosen === undefined,
        ...(managed && { pid: managed.pid }),
        ...(why && { lastError: why }),
      };
    },
    /** For clients of this machine's owner: the address with the credentials in it. */
    environment(): { NATS_URL: string } {
      if (chosen) return { NATS_URL: addressOf(chosen) };
      if (managed) return { NATS_URL: managed.url.replace('//', `//${managed.token}@`) };
      throw new TroupeError('unavailable', 'the bus is offline; troupe status says why');
    },
  };
}

/** A token or a user with a password goes into the address; creds and nkeys have no place there. */
function addressOf({ servers, options }: ChosenBus): string {
  const { token, user, pass } = options;
  const login = token ?? (user && `${encodeURIComponent(user)}:${encodeURIComponent(pass ?? '')}`);
  const scheme = options.tls ? 'tls' : 'nats';
  return servers.map((host) => `${scheme}://${login ? `${login}@` : ''}${host}`).join(',');
}

const STATES: Record<string, 'online' | 'connecting' | 'offline' | 'closed'> = {
  ...{ connecting: 'connecting', online: 'online', draining: 'closed', closed: 'closed' },
};

const leafOf = (value: string | Record<string, string>): string =>
  typeof value === 'string' ? value : (Object.values(value)[0] ?? '');

type Reported = { subscribe(listener: (state: { value: unknown; context: { why: string } }) => void): unknown };

function report(actor: Reported, name: string, logger: Logger): void {
  let last = '';
  actor.subscribe(({ value, context: { why } }) => {
    const state = leafOf(value as string);
    if (state === last) return;
    last = state;
    logger[why ? 'warn' : 'info']({ [name]: state, ...(why && { why }) }, `${name} ${state}`);
  });
}
