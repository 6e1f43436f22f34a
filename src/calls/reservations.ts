// Requests that may be sent and are not yet, because what will be done must be on the disk first. Each is asked for once; after
// a yes it goes on to the server, unless its time, its caller or its server has ended it meanwhile.

import type { Driver, InFlight } from './request.ts';

export type ReservationsOptions = {
  readonly drive: Driver;
  /** Takes it to the server, or lets it be the first that goes there. */
  readonly readmit: (request: InFlight) => void;
  readonly onCrash: (error: unknown) => void;
};

export function createReservations({ drive, readmit, onCrash }: ReservationsOptions) {
  const pending = new Set<InFlight>();
  const granted = new WeakSet<InFlight>();

  function forget(request: InFlight): void {
    pending.delete(request);
    request.isReserving = false;
  }

  function decided(request: InFlight, isGranted: boolean): void {
    if (!request.isReserving) return; // it has ended
    forget(request);
    if (!isGranted) return drive(Object.assign(request, { why: 'somebody else has it' }), 'cancel');
    granted.add(request);
    readmit(request);
  }

  return {
    /** False when it may be sent now. */
    begin(request: InFlight, reserve: () => Promise<boolean>): boolean {
      if (granted.has(request)) return false;
      pending.add(request);
      request.isReserving = true;
      const refused = (error: unknown): boolean => {
        onCrash(error);
        return false;
      };
      void reserve()
        .catch(refused)
        .then((isGranted) => decided(request, isGranted));
      return true;
    },
    forget,
    all: (): Iterable<InFlight> => pending,
    size: (): number => pending.size,
  };
}
