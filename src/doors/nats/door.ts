// The NATS door: calls to servers, questions, tasks and whole MCP sessions on one connection. What it offers follows the
// configuration: the subjects of a server or profile are there exactly while it is configured.

import type { NatsConnection } from 'nats';
import type { Subjects } from '../../bus/subjects.ts';
import type { Signal } from '../../calls/call.ts';
import type { Ports } from '../../operations/operations.ts';
import type { Sessions } from '../../sessions/host.ts';
import { serveAsks } from './asks.ts';
import { serveCalls } from './calls.ts';
import { createResponder } from './responder.ts';
import { serveSessions } from './rpc.ts';
import { serveTasks } from './tasks.ts';

export type NatsDoorOptions = {
  readonly nc: NatsConnection;
  readonly subjects: Subjects;
  readonly daemon: string;
  /** What the daemons of one state directory have in common. */
  readonly family: string;
  readonly ports: Pick<Ports, 'fleet' | 'catalog' | 'tasks' | 'inbox'>;
  readonly sessions: Sessions;
  readonly onProgress: (requestId: string, caller: string, signal: Signal) => void;
  readonly onTrouble: (error: unknown) => void;
};
export type NatsDoor = ReturnType<typeof natsDoor>;

/** Servers by name, and profiles as `@name`. */
export type Offer = { readonly servers: readonly string[]; readonly profiles: readonly string[] };

export function natsDoor(options: NatsDoorOptions) {
  const responder = createResponder(options);
  const calls = serveCalls(responder, options);
  const sessions = serveSessions(responder, options);
  serveAsks(responder, options);
  serveTasks(responder, options);

  return {
    /**
     * Opens the subjects of these and gives up those of all others. Resolves when the broker brings nothing more for what was
     * given up: whoever calls next hears that nobody listens. What had come is answered.
     */
    async offer({ servers, profiles }: Offer): Promise<void> {
      const scopes = ['', ...servers, ...profiles];
      // A connection that is closed meanwhile brings nothing more either.
      await Promise.all([calls.offer(servers), sessions.offer(scopes)]).catch(options.onTrouble);
    },
    async close(): Promise<void> {
      await Promise.all([responder.close(), calls.close(), sessions.close()]);
    },
  };
}
