// Whose word a call needs before it is sent, or sent again. The lane orders what its chart says; who is asked, and how, is known
// to a higher layer, which tells the answer.

import type { Failure } from '../protocol/failures.ts';
import type { Call } from './call.ts';
import type { InFlight } from './request.ts';

/** Makes a step of the request that somebody was asked about. False when it does not wait for that any more. */
export type Tell = (event: 'clear' | 'ask' | 'approved' | 'denied' | 'visited' | 'unvisited', why?: Failure) => boolean;

export type Permits = {
  /** On the path of every call. `defer`: it is known once the server has said what it offers. */
  needOf(call: Call): 'clear' | 'defer' | 'ask';
  /** Tells `clear` or `ask` once that is known. */
  awaitList(request: InFlight, tell: Tell): void;
  /** Tells `approved`, or `denied` and why. */
  askApproval(request: InFlight, tell: Tell): void;
  /** Whether the error that the server has answered with wants addresses visited that somebody here can be asked to visit. */
  wantsVisits(request: InFlight): boolean;
  /** Tells `visited` or `unvisited`. */
  askVisits(request: InFlight, tell: Tell): void;
};

/** Every call is clear. */
export const NO_PERMITS: Permits = {
  needOf: () => 'clear',
  awaitList: (_, tell) => void tell('clear'),
  askApproval: (_, tell) => void tell('approved'),
  wantsVisits: () => false,
  askVisits: (_, tell) => void tell('unvisited'),
};
