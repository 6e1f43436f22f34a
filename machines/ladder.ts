// Who is asked a server's question, one after the other: the host whose call caused it, services on the bus, the rules of the
// configuration. Whoever was asked may still answer when the next one is; the inbox shows the question all the while.

/**
 * The states of an open question; a machine adds its own beside them. It is `opening` until its row is on the disk, and its
 * time runs already. `patience` is how long the host is asked alone.
 */
export const LADDER = {
  opening: { on: { opened: 'host' } },
  host: { entry: 'askHost', on: { 'host.passed': 'bus' }, after: { patience: 'bus' } },
  bus: { entry: 'askBus', on: { 'bus.passed': 'rule' } },
  rule: { entry: 'applyRule', on: { 'rule.passed': 'inbox' } },
  inbox: {},
} as const;

/** `expiryMs`: every question ends. */
export type AskSpec = { readonly patienceMs: number; readonly expiryMs: number };

export type LadderEvent =
  | { type: 'opened' }
  | { type: 'host.passed' }
  | { type: 'bus.passed' }
  | { type: 'rule.passed' }
  /** The server does not want to know any more, or nobody is left for whom it could matter. */
  | { type: 'withdrawn' };
