// Why a call must not be sent to its server: it is not allowed, was not negotiated, or names a tool that is not there.
// Checked at the last moment, because a sleeping server's capabilities are only known once it is awake.

import type { Call } from '../calls/call.ts';
import { nameIn } from '../calls/outcomes.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { offers } from '../catalog/facts.ts';
import { glob, permission } from '../catalog/patterns.ts';
import { nearest } from '../config/names.ts';
import { type Failure, type FailureCode, TroupeError } from '../protocol/failures.ts';
import { hasName, rowOf } from '../protocol/methods.ts';
import type { Member } from './member.ts';

/** More than we put around the params of a call: its id, its method, a progress token, that it is a task. */
const FRAME_BYTES = 4_096;

export function refusal(member: Member, catalog: Catalog, call: Call): Failure | undefined {
  if (call.upstream !== undefined) return undefined; // it was let in, and nothing is sent again
  const { server, facts } = member;
  const harm = harmOf(member, call);
  if (harm) return harm;
  if (call.method === 'tools/call' && !isAllowed(member, call.name))
    return unsent(
      server,
      'unauthorized',
      `tool ${nameIn(call)} of ${server} is not allowed; see x-troupe.tools in the configuration`,
    );
  if (!mayPass(member, call.method)) return unsent(server, 'unsupported', notPassed(server, call.method));
  if (facts && !offers(facts, call.method)) return unsent(server, 'unsupported', notOffered(server, call.method));
  const kind = rowOf(call.method)?.target?.kind;
  if (!hasName(kind)) return undefined; // a resource may exist unlisted
  const { isFresh, names } = catalog.get((member.first ?? member).name, kind);
  if (!isFresh || names.has(call.name)) return undefined;
  const guess = nearest(call.name, [...names].slice(0, 500));
  const hint = guess ? `did you mean ${guess}?` : `see troupe ${kind} ${server}`;
  return unsent(server, 'unknownName', `server ${server} has no ${kind.slice(0, -1)} ${nameIn(call)}; ${hint}`);
}

/** Why a request would harm its server, be it a caller's or one that we send because of callers. */
export function harmOf({ server, suspects, config }: Member, call: Call): Failure | undefined {
  const { maxSendBytes } = config.settings;
  if (call.params.length + FRAME_BYTES > maxSendBytes)
    return unsent(
      server,
      'tooLarge',
      `${nameIn(call)} has ${call.params.length} bytes, more than ${server} is sent; it was not sent: make it smaller, or raise x-troupe.maxSendBytes (${maxSendBytes}) if the server reads more`,
    );
  if (suspects.size > 0 && suspects.isGuilty(call))
    return unsent(
      server,
      'rejected',
      `this call has ended ${server} twice; it is not sent again: change it, wait ten minutes, or run troupe restart ${server}`,
    );
  return undefined;
}

const unsent = (server: string, code: FailureCode, message: string): Failure => ({
  code,
  delivery: 'not sent',
  message,
  server,
});

/** For requests that we answer ourselves: no empty list where the server has none, no subscription that it cannot serve. */
export function mustOffer(member: Member | undefined, method: string): void {
  if (member?.facts && !offers(member.facts, method))
    throw new TroupeError('unsupported', notOffered(member.server, method));
}

/**
 * A method that only the server knows may do what a tool does, past the rules for tools: where there are such rules, only the
 * methods pass that the configuration names.
 */
export function mayPass({ config }: Member, method: string): boolean {
  if (rowOf(method)) return true;
  const { methods, tools, approve } = config.settings;
  const named = method.replace(/^notifications\//, ''); // `skills/*` means what is told of skills as well
  if (methods !== 'auto') return methods.some((pattern) => glob(pattern)(named));
  return !tools.allow && !tools.deny && approve.length === 0;
}

const notPassed = (server: string, method: string): string =>
  `method ${method.slice(0, 60)} is not sent to ${server}; name it in x-troupe.methods of the server, if it may be`;

const notOffered = (server: string, method: string): string =>
  `server ${server} does not offer ${method}; it did not declare the capability`;

export const isAllowed = ({ config }: Member, tool: string): boolean => permission(config.settings.tools)(tool);
