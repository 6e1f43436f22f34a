// Whose calls a server works on, as seen by those who must know on whose behalf it speaks.

import { canAsk, type InFlight } from './request.ts';

export function occupants(sent: ReadonlyMap<string, InFlight>, coming: () => Iterable<InFlight>) {
  return {
    /** What callers have at the server; our own requests, such as lists and pings, ask and tell nothing. */
    inProgress: (): InFlight[] => [...sent.values()].filter(({ call }) => call.door !== 'troupe'),
    /** Those of them on whose behalf it may ask. */
    asking: (): InFlight[] => [...sent.values()].filter(({ call }) => canAsk(call)),
    /** Whether there is, or is about to be, one of those. */
    mayBeAsked: (): boolean => [...sent.values(), ...coming()].some(({ call }) => canAsk(call)),
  };
}
