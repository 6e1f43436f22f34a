// One server of the fleet as the rest of the daemon knows it: its configuration, its calls in flight, and what is known of
// the server at this moment. Its machine decides; the machine's ports read and write the member.

import type { Logger } from 'pino';
import type { Lane } from '../calls/lane.ts';
import type { InFlight } from '../calls/request.ts';
import type { Facts } from '../catalog/facts.ts';
import type { Kind } from '../catalog/kinds.ts';
import type { ServerConfig } from '../config/schema.ts';
import { Homes } from './homes.ts';
import type { ServerState } from './states.ts';
import { createSubscriptions, type Subscriptions } from './subscriptions.ts';
import type { GivenUp, Suspects } from './suspects.ts';

/** The processes among which the calls of one tenant are spread, as a member sees them. */
export type MemberPool = {
  /** `wished` is the process that knows something of the request, if it is not just the first. */
  admit(request: InFlight, wished: Member): void;
  /** Something has changed: calls that wait are sent, refused, or get one more process. */
  pump(): void;
  /** The process that a session is at home in; from now on, if it had none. */
  homeOf(session: string): Member;
  processes(): Member[];
  retune(): void;
  /** The first process goes on alone, until more are needed. */
  alone(): void;
  close(): void;
  readonly queued: number;
};

export type Member = {
  readonly name: string;
  /** The server's name in the configuration: another principal's instance has a name of its own. */
  readonly server: string;
  /** The principal or session whose process it is: `_` for the owner's, which all share who have none of their own. */
  readonly principal: string;
  /** The principal whose login it uses and whose room it takes, also where one session has the process alone. */
  readonly onBehalfOf: string;
  /** For a further process of a pool: the first process, whose lists are those of all. */
  readonly first: Member | undefined;
  /** Once the server is known to ask, the pool takes the calls during which it may; one for all processes of a tenant. */
  pool: MemberPool | undefined;
  /** Which sessions stay with which process of the tenant; one for all its processes, also while there is only the first. */
  readonly homes: Homes<Member>;
  /** Called when the server asked, and not on the stream of a call. */
  sawAsking: (() => void) | undefined;
  config: ServerConfig;
  readonly lane: Lane;
  readonly logger: Logger;
  readonly subscriptions: Subscriptions;
  /** Shared by all processes of the server. */
  readonly suspects: Suspects;
  readonly givenUp: GivenUp;
  facts: Facts | undefined;
  pid: number | undefined;
  state: ServerState;
  since: number;
  why: string;
  lastError: string;
  restarts: number;
  calls: number;
  errors: number;
  /** Tells the server's chart that the server may answer no more; a connection provides it while there is one. */
  doubt: (() => void) | undefined;
  /** Reads a list once more that could not be read; provided once the lists of the server are kept. */
  relist: ((kind: Kind) => Promise<void>) | undefined;
  /** Sends a notification, unless the server does not read; a connection provides it while it is open. */
  notify: ((method: string, params: Buffer) => void) | undefined;
};

/** The principal of the process that everybody shares who has none of their own. */
export const OWNER = '_';

/** The principal, or the session, that an instance serves. */
export const principalOf = (instance: string): string =>
  instance.includes('@') ? instance.slice(instance.indexOf('@') + 1) : OWNER;

type NewMember = Pick<Member, 'name' | 'config' | 'lane' | 'logger' | 'suspects'> & {
  readonly onBehalfOf: string | undefined;
  readonly first?: Member | undefined;
};

export const newMember = ({ name, config, lane, logger, suspects, onBehalfOf, first }: NewMember): Member => ({
  name,
  server: config.name,
  principal: principalOf(name),
  onBehalfOf: onBehalfOf ?? principalOf(name),
  first,
  pool: first?.pool,
  homes: first?.homes ?? new Homes(),
  sawAsking: undefined,
  config,
  lane,
  logger,
  subscriptions: createSubscriptions(),
  suspects,
  givenUp: suspects.ofProcess(),
  facts: undefined,
  pid: undefined,
  state: 'stopped',
  since: Date.now(),
  why: '',
  lastError: '',
  restarts: 0,
  calls: 0,
  errors: 0,
  doubt: undefined,
  relist: undefined,
  notify: undefined,
});
