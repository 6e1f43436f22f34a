// All requests in flight of this daemon, whichever server they go to: what drives them, when each must end, who may cancel
// which, and which of them wait for somebody's word.

import type { World } from '../world/world.ts';
import type { Call } from './call.ts';
import { createDeadlines } from './deadlines.ts';
import { actorDriver, type InFlight, type Limits, newRequest, type Owner, tableDriver } from './request.ts';
import { Transients } from './transients.ts';

export type RequestsOptions = {
  readonly driver: 'table' | 'actor';
  readonly world: World;
  /** A bug of ours: an actor or a reservation threw. */
  readonly onCrash: (error: unknown) => void;
  /** How many bytes the calls that are not answered yet may have together. */
  readonly maxBytes?: number;
};

/** A call of this size waits for its turn however many large ones do: how many may wait bounds what they take. */
const SMALL_BYTES = 65_536;
export type Requests = ReturnType<typeof createRequests>;

export function createRequests({ driver, world, onCrash, maxBytes = Number.POSITIVE_INFINITY }: RequestsOptions) {
  const drive = driver === 'actor' ? actorDriver(onCrash) : tableDriver;
  const deadlines = createDeadlines<InFlight>((request) => request.owner.overdue(request), world);
  /** By principal and request id: the principal who made a call may cancel it, and nobody else. */
  const cancellable = new Transients<string, InFlight>();
  /** By server: those that wait for somebody's word and are at no process. */
  const parked = new Map<string, Set<InFlight>>();
  let bytes = 0;

  return {
    drive,
    deadlines,
    world,
    onCrash,
    begin(call: Call, owner: Owner, limits: Limits): InFlight {
      const request = newRequest(call, owner, limits, world.now());
      bytes += call.params.length;
      deadlines.add(request);
      if (call.isCancellable) cancellable.set(keyOf(call.principal, call.requestId), request);
      return request;
    },
    end(request: InFlight): void {
      const { call } = request;
      deadlines.remove(request);
      bytes -= call.params.length;
      if (!call.isCancellable) return;
      const key = keyOf(call.principal, call.requestId);
      if (cancellable.get(key) === request) cancellable.delete(key);
    },
    /** What the calls that are not answered yet have together. */
    get bytes() {
      return bytes;
    },
    /** Whether there is no memory for one more call of that size, which has begun. */
    isTooMuch: ({ params }: Call): boolean => bytes > maxBytes && params.length > SMALL_BYTES && bytes > params.length,
    isInFlight: (principal: string, requestId: string): boolean => cancellable.has(keyOf(principal, requestId)),
    /** False when that principal has no such call in flight. */
    cancel(principal: string, requestId: string, why: string): boolean {
      const request = cancellable.get(keyOf(principal, requestId));
      if (!request) return false;
      request.why = why;
      return drive(request, 'cancel');
    },
    /**
     * The caller is back, or has left for good. What waits for an answer to a question would then never go on: it is given up;
     * anything else that its server has goes on to its end.
     */
    callerIs(where: 'back' | 'gone', principal: string, requestId: string): void {
      const request = cancellable.get(keyOf(principal, requestId));
      if (!request) return;
      if (where === 'back') return void drive(request, 'back');
      request.why = 'the caller went away';
      drive(request, request.holds > 0 ? 'cancel' : 'left');
    },
    park(request: InFlight): void {
      const { server } = request.call;
      const others = parked.get(server);
      if (others) others.add(request);
      else parked.set(server, new Set([request]));
    },
    unpark(request: InFlight): void {
      const { server } = request.call;
      const others = parked.get(server);
      others?.delete(request);
      if (others?.size === 0) parked.delete(server);
    },
    parkedAt: (server: string): number => parked.get(server)?.size ?? 0,
    /** The server was removed, so nobody's word can help the calls that wait for one. */
    sendAway(server: string, why: string): void {
      for (const request of [...(parked.get(server) ?? [])]) {
        request.why = why;
        drive(request, 'gone');
      }
    },
  };
}

const keyOf = (principal: string, requestId: string): string => `${principal} ${requestId}`;
