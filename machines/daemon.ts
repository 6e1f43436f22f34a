// The daemon's life, and the order of its parts: store, bus, plugins, servers, doors; and the same in reverse. When a part
// fails to start, that part and those before it, and no others, are closed before the daemon ends.

import { assign, fromPromise, setup } from 'xstate';

// ── Types ────────────────────────────────────────────────────────────────────

export type DaemonSpec = { readonly closeMs: number };
export type DaemonEvent = { type: 'stop' } | { type: 'abort' } | { type: 'crashed'; why: string };

type Context = { spec: DaemonSpec; why: string };

const port = () =>
  fromPromise<void>(() => {
    throw new Error('daemon: its ports were not provided');
  });

// ── Setup ────────────────────────────────────────────────────────────────────

const daemon = setup({
  types: {
    context: {} as Context,
    input: {} as DaemonSpec,
    events: {} as DaemonEvent,
    output: {} as { why: string },
  },
  actors: {
    openStore: port(),
    openBus: port(),
    openPlugins: port(),
    openServers: port(),
    openDoors: port(),
    closeDoors: port(),
    closeServers: port(),
    closePlugins: port(),
    closeBus: port(),
    closeStore: port(),
  },
  actions: {
    /** The first trouble is the cause; later ones, while parts are closed, are its consequences. */
    blame: assign({ why: ({ context }, why: string) => context.why || why }),
  },
  delays: { close: ({ context }) => context.spec.closeMs },
});

const blameError = {
  type: 'blame',
  params: ({ event }: { event: { error: unknown } }) => String(event.error),
} as const;
const blameCrash = { type: 'blame', params: ({ event }: { event: { why: string } }) => event.why } as const;

type Part = 'Store' | 'Bus' | 'Plugins' | 'Servers' | 'Doors';

/** One part comes up. If it cannot, or the daemon is stopped meanwhile, it and all before it are closed. */
const opening = (part: Part, next: string) =>
  ({
    invoke: {
      src: `open${part}`,
      onDone: next,
      onError: { target: `#daemon.stopping.${part.toLowerCase()}`, actions: blameError },
    },
    on: {
      stop: `#daemon.stopping.${part.toLowerCase()}`,
      crashed: { target: `#daemon.stopping.${part.toLowerCase()}`, actions: blameCrash },
    },
  }) as const;

/** One part goes down; neither an error nor silence keeps the others from going down too. */
const closing = (part: Part, next: string) =>
  ({
    invoke: {
      src: `close${part}`,
      onDone: next,
      onError: { target: next, actions: blameError },
    },
    after: { close: next },
  }) as const;

// ── Machine ──────────────────────────────────────────────────────────────────

export const daemonMachine = daemon.createMachine({
  id: 'daemon',
  context: ({ input }) => ({ spec: input, why: '' }),
  output: ({ context }) => ({ why: context.why }),
  initial: 'starting',
  on: { abort: '.stopped' },
  states: {
    starting: {
      initial: 'store',
      states: {
        store: opening('Store', 'bus'),
        bus: opening('Bus', 'plugins'),
        plugins: opening('Plugins', 'servers'),
        servers: opening('Servers', 'doors'),
        doors: opening('Doors', '#daemon.running'),
      },
    },
    running: {
      on: { stop: 'stopping', crashed: { target: 'stopping', actions: blameCrash } },
    },
    stopping: {
      initial: 'doors',
      on: { crashed: { actions: blameCrash } },
      states: {
        doors: closing('Doors', 'servers'),
        servers: closing('Servers', 'plugins'),
        plugins: closing('Plugins', 'bus'),
        bus: closing('Bus', 'store'),
        store: closing('Store', '#daemon.stopped'),
      },
    },
    stopped: { type: 'final' },
  },
});
