// The bus as the rest of the daemon sees it: where NATS is, whether we are connected, and who is told when we are. It owns two
// actors: the broker, which finds or runs a nats-server, and the connection to it.

import { type ConnectionOptions, connect, Events, type NatsConnection } from 'nats';
import type { Logger } from 'pino';
import { createActor, fromCallback, fromPromise, type SnapshotFrom, waitFor } from 'xstate';
import { type BrokerEvent, brokerMachine, type Located, type ToProcess } from '../../machines/broker.ts';
import { type BusEvent, busMachine, type ToBusConnection } from '../../machines/bus.ts';
import type { Config } from '../config/schema.ts';
import { sentence, TroupeError } from '../protocol/failures.ts';
import { realWorld, type World } from '../world/world.ts';
import { fetchNatsServer, findNatsServer } from './acquire.ts';
import { bounded } from './bounds.ts';
import { type ChosenBus, natsFromEnvironment } from './environment.ts';
import { type Broker, startBroker } from './managed.ts';
import { slabbed } from './small.ts';

export type BusOptions = {
  readonly name: string;
  readonly env: NodeJS.ProcessEnv;
  readonly directory: string;
  /** The name of this daemon among those of the state directory, which share the nats-server. */
  readonly user: string;
  readonly cache: string;
  readonly nats: Config['nats'];
  readonly logger: Logger;
  /** A nats-server has to be fetched first: a line for people. */
  readonly onFetch: (what: string) => void;
  readonly onConnection: (nc: NatsConnection) => void;
  readonly onReconnect: (nc: NatsConnection) => void;
  /** Before the connection closes: sends the events that are still waiting. */
  readonly beforeDrain: () => Promise<void>;
  readonly onCrash: (why: string) => void;
  readonly world?: World;
};

export type Bus = ReturnType<typeof createBus>;

const BROKER = { backoffMs: [100, 500, 2_000, 10_000], retryMs: 60_000, closeMs: 8_000, settleMs: 10_000 };
const CONNECTION = { retryMs: 1_000, drainMs: 5_000 };
const FIRST_MS = 20_000;

/** The nats-server that this daemon uses and runs, if the user chose no other. */
type Managed = { broker: Broker | undefined; isAbandoned: boolean };

export function createBus(options: BusOptions) {
  const { env, nats, logger, onCrash } = options;
  const chosen = natsFromEnvironment(nats.url ? { ...env, NATS_URL: env.NATS_URL || nats.url } : env);
  const managed: Managed = { broker: undefined, isAbandoned: false };
  const onAddress = (url: string): void => connection.send({ type: 'address', url });
  const optionsOf = (url: string): ConnectionOptions => {
    if (chosen) return { servers: chosen.servers, ...chosen.options };
    return { servers: url, ...(managed.broker && { token: managed.broker.token }) };
  };

  const broker = createActor(
    brokerMachine.provide({
      actors: { locate: locating(options, chosen, onAddress), process: serverProcess(options, managed, onAddress) },
    }),
    { input: BROKER },
  );
  const connection = createActor(busMachine.provide({ actors: { connection: natsConnection(options, optionsOf) } }), {
    input: CONNECTION,
  });
  broker.subscribe({ error: (error) => onCrash(sentence(error)) });
  connection.subscribe({ error: (error) => onCrash(sentence(error)) });
  report(connection, 'bus', logger);
  report(broker, 'broker', logger);

  return {
    start(): void {
      connection.start();
      broker.start();
      broker.send({ type: 'start' });
    },
    /** Resolves when we are on the bus, or when it is plain that we shall not be for a while. Never rejects. */
    async tried(): Promise<void> {
      const isTried = (state: BusSnapshot) => state.matches({ linked: 'online' }) || state.matches('parted');
      const connected = waitFor(connection, isTried, { timeout: FIRST_MS });
      const hopeless = waitFor(broker, isHopeless, { timeout: FIRST_MS });
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
    /** No goodbye: the daemon is told to end at once, and its nats-server must not outlive the last daemon. */
    abandon(): void {
      if (broker.getSnapshot().status !== 'active') return; // it was stopped, and another process may have its pid
      managed.isAbandoned = true;
      broker.stop(); // or it would start the next nats-server
      managed.broker?.abandon();
    },
    status: () => statusOf(connection.getSnapshot(), broker.getSnapshot().context.why, chosen, managed.broker),
    /** For clients of this machine's owner: the address with the credentials in it. */
    environment(): { NATS_URL: string } {
      if (chosen) return { NATS_URL: addressOf(chosen) };
      if (managed.broker) return { NATS_URL: managed.broker.url.replace('//', `//${managed.broker.token}@`) };
      throw new TroupeError('unavailable', 'the bus is offline; troupe status says why');
    },
  };
}

/** There is no nats-server, or it has ended as often as it is restarted quickly. */
const isHopeless = (state: SnapshotFrom<typeof brokerMachine>): boolean =>
  state.matches('missing') || (state.matches('waiting') && state.context.restarts >= BROKER.backoffMs.length);

// ── The ports of the broker machine ──────────────────────────────────────────

function locating(options: BusOptions, chosen: ChosenBus | undefined, onAddress: (url: string) => void) {
  const onProgress = (what: string): void => {
    options.logger.info(what);
    options.onFetch(what);
  };
  return fromPromise<Located>(async () => {
    if (chosen) {
      onAddress(chosen.servers.join(','));
      return { binary: undefined };
    }
    const where = { env: options.env, cacheDir: options.cache };
    const found = (await findNatsServer(where)) ?? (await fetchNatsServer({ ...where, onProgress }));
    return { binary: found.path };
  });
}

function serverProcess(options: BusOptions, managed: Managed, onAddress: (url: string) => void) {
  return fromCallback<ToProcess, { binary: string }>(({ input, receive, sendBack }) => {
    const tell = sendBack as (event: BrokerEvent) => void;
    const starting = startBroker({
      binary: input.binary,
      directory: options.directory,
      user: options.user,
      maxPayloadBytes: options.nats.maxPayloadBytes,
      onExit: (why) => tell({ type: 'process.exited', why }),
    });
    starting.then(
      (broker) => {
        if (managed.isAbandoned) return broker.abandon();
        managed.broker = broker;
        tell({ type: 'process.ready' });
        onAddress(broker.url);
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
}

// ── The port of the bus machine ──────────────────────────────────────────────

const RECONNECT: ConnectionOptions = {
  maxReconnectAttempts: -1,
  reconnectTimeWait: 200,
  reconnectJitter: 100,
  pingInterval: 20_000,
  noAsyncTraces: true,
};

/**
 * One client that reconnects for ever. Publishing while it is disconnected loses the message silently, so events that must
 * arrive go through the outbox.
 */
function natsConnection(options: BusOptions, optionsOf: (url: string) => ConnectionOptions) {
  return fromCallback<ToBusConnection, { url: string }>(({ input, receive, sendBack }) => {
    const tell = sendBack as (event: BusEvent) => void;
    let nc: NatsConnection | undefined;
    let isOver = false;
    const warn = paced((why) => options.logger.warn(why), options.world);
    const blame = paced((why) => options.logger.error(why), options.world);

    connect({ ...RECONNECT, name: options.name, ...optionsOf(input.url) }).then(
      (connected) => {
        nc = bounded(slabbed(connected), { onRefused: warn, onFault: (fault) => blame(sentence(fault)) });
        if (isOver) return void nc.close();
        void watch(nc);
        options.onConnection(nc);
        tell({ type: 'connection.up' });
      },
      // The client would retry in silence; the machine retries too, and people see why.
      (error) =>
        tell({ type: 'connection.closed', why: `NATS at ${input.url} cannot be reached (${sentence(error)})` }),
    );

    async function watch(connection: NatsConnection): Promise<void> {
      void connection.closed().then((error) => {
        if (!isOver) tell({ type: 'connection.closed', why: error ? sentence(error) : 'the connection was closed' });
      });
      for await (const { type, permissionContext } of connection.status()) {
        if (isOver) return;
        // Refused for good, and nothing is sent again: what nobody may hear does not hold up the rest.
        if (permissionContext) warn(forbidden(permissionContext));
        if (type === Events.Disconnect) tell({ type: 'connection.down', why: 'the connection to NATS was lost' });
        if (type === Events.Reconnect) {
          tell({ type: 'connection.up' });
          options.onReconnect(connection);
        }
      }
    }

    receive(() => {
      if (!nc) return tell({ type: 'connection.closed', why: 'it was never connected' });
      const connection = nc;
      void options
        .beforeDrain()
        .then(() => connection.drain())
        .catch(() => connection.close()) // already gone: nothing can be sent any more
        .catch(() => {}); // it is closed already
    });

    return () => {
      isOver = true;
      void nc?.close().catch(() => {}); // it is closed already
    };
  });
}

/** The first is told at once; of those that follow within ten seconds only their number: strangers can cause them. */
function paced(tell: (why: string) => void, world: World = realWorld): (why: string) => void {
  let untold = 0;
  let next = 0;
  return (why) => {
    const now = world.now();
    if (now < next) return void untold++;
    tell(untold > 0 ? `${why}; and ${untold} more since the last such line` : why);
    untold = 0;
    next = now + PACE_MS;
  };
}

const PACE_MS = 10_000;

const forbidden = ({ operation, subject }: { operation: string; subject: string }): string =>
  `the broker does not let us ${operation === 'publish' ? 'publish' : 'subscribe'} to ${subject.slice(0, 200)}; its permissions must allow it`;

// ── What people see ──────────────────────────────────────────────────────────

type BusSnapshot = SnapshotFrom<typeof busMachine>;

function statusOf(
  { value, context }: BusSnapshot,
  brokerTrouble: string,
  chosen: ChosenBus | undefined,
  broker: Broker | undefined,
) {
  const leaf = leafOf(value);
  const why = context.why || brokerTrouble;
  return {
    // Trying again after a failure is still being offline.
    state: leaf === 'connecting' && why ? 'offline' : (STATES[leaf] ?? 'offline'),
    url: chosen ? chosen.servers.join(',') : (broker?.url ?? ''),
    managed: chosen === undefined,
    ...(broker && { pid: broker.pid }),
    ...(why && { lastError: why }),
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
  connecting: 'connecting',
  online: 'online',
  draining: 'closed',
  closed: 'closed',
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
