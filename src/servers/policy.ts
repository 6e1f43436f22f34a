// Why a call must not be sent to its server: it is not allowed, was not negotiated, or names what is not there.
// It is asked at the last moment, because a sleeping server's capabilities are only known once it is awake.

import type { Call } from '../calls/call.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { nearest } from '../config/names.ts';
import { type Failure, type FailureCode, TroupeError } from '../failures.ts';
import { mayAsk } from './facts.ts';
import type { Member } from './member.ts';

export function refusal(member: Member, catalog: Catalog, call: Call): Failure | undefined {
  const { server, facts } = member;
  const fail = (code: FailureCode, message: string): Failure => ({ code, delivery: 'not sent', message, server });
  if (call.method === 'tools/call' && !isAllowed(member, call.name))
    return fail(
      'unauthorized',
      `tool ${call.name} of ${server} is not allowed; see x-troupe.tools in the configuration`,
    );
  if (facts && !mayAsk(facts, call.method)) return fail('unsupported', notOffered(server, call.method));
  const kind = call.method === 'tools/call' ? 'tools' : call.method === 'prompts/get' ? 'prompts' : undefined;
  if (!kind) return undefined;
  const { isFresh, names } = catalog.get(member.name, kind);
  if (!isFresh || names.has(call.name)) return undefined;
  const guess = nearest(call.name, [...names].slice(0, 500));
  const hint = guess ? `did you mean ${guess}?` : `see troupe ${kind} ${server}`;
  return fail('unknownName', `server ${server} has no ${kind.slice(0, -1)} ${call.name.slice(0, 128)}; ${hint}`);
}

/** For what is answered without asking the server: no empty list of what it does not have, no subscription in vain. */
export function mustOffer(member: Member | undefined, method: string): void {
  if (member?.facts && !mayAsk(member.facts, method))
    throw new TroupeError('unsupported', notOffered(member.server, method));
}

const notOffered = (server: string, method: string): string =>
  `server ${server} does not offer ${method}; it did not declare the capability`;

export function isAllowed({ config }: Member, tool: string): boolean {
  const { allow, deny } = config.settings.tools;
  if (deny?.some((pattern) => matches(pattern, tool))) return false;
  return allow === undefined || allow.some((pattern) => matches(pattern, tool));
}

/** Names with `*` for any run of characters. Compared piece by piece: a pattern must not become a slow regex. */
function matches(pattern: string, name: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  if (rest.length === 0) return pattern === name;
  const last = rest.pop() ?? '';
  if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) return false;
  let at = first.length;
  for (const piece of rest) {
    const found = name.indexOf(piece, at);
    if (found < 0 || found + piece.length > name.length - last.length) return false;
    at = found + piece.length;
  }
  return true;
}
