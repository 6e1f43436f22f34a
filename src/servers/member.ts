// One server of the fleet as the rest of the daemon knows it: its configuration, its calls in flight, and what is known of
// it at this moment. Its machine decides; this is what its machine's ports read and write.

import type { Logger } from 'pino';
import type { Lane } from '../calls/lane.ts';
import type { Facts } from '../catalog/facts.ts';
import type { ServerConfig } from '../config/schema.ts';
import { principalOf } from './instances.ts';
import type { Pool } from './pool.ts';
import type { ServerState } from './states.ts';
import { createSubscriptions, type Subscriptions } from './subscriptions.ts';

export type Member = {
  readonly name: string;
  /** The server's name in the configuration: another principal's instance has a name of its own. */
  readonly server: string;
  /** Whose process it is: `_` for the owner's, which everybody shares who has none of their own. */
  readonly principal: string;
  /** The principal it works for, also where one session has it alone: whose login it uses, whose room it takes. */
  readonly onBehalfOf: string;
  /** Of a further process in a pool: the first one, whose lists and listeners are those of all. */
  readonly first: Member | undefined;
  /** Takes the calls on whose behalf it may ask, once it is known to ask; one for all processes of a tenant. */
  pool: Pool | undefined;
  /** Told that it asked, and not on the stream of a call. */
  sawAsking: (() => void) | undefined;
  config: ServerConfig;
  readonly lane: Lane;
  readonly logger: Logger;
  readonly subscriptions: Subscriptions;
  facts: Facts | undefined;
  pid: number | undefined;
  state: ServerState;
  since: number;
  why: string;
  lastError: string;
  restarts: number;
  calls: number;
  errors: number;
  /** Asks the server whether it still answers; a connection provides it while there is one. */
  probe: (() => void) | undefined;
};

type NewMember = Pick<Member, 'name' | 'config' | 'lane' | 'logger'> & {
  readonly onBehalfOf: string | undefined;
  readonly first?: Member | undefined;
};

export const newMember = ({ name, config, lane, logger, onBehalfOf, first }: NewMember): Member => ({
  name,
  server: config.name,
  principal: principalOf(name),
  onBehalfOf: onBehalfOf ?? principalOf(name),
  first,
  pool: first?.pool,
  sawAsking: undefined,
  config,
  lane,
  logger,
  subscriptions: createSubscriptions(),
  facts: undefined,
  pid: undefined,
  state: 'stopped',
  since: Date.now(),
  why: '',
  lastError: '',
  restarts: 0,
  calls: 0,
  errors: 0,
  probe: undefined,
});
