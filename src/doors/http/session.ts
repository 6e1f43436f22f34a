// The session that a request names, if the request may have it: of that id, that principal and that endpoint.

import { ERAS, eraOf } from '../../protocol/eras.ts';
import type { HostSession } from '../../sessions/host.ts';
import { type House, invalid, type Visit } from './visit.ts';

/** Undefined when there is none, and then it has been said. Whose a session is that is not theirs, nobody is told. */
export function sessionOf({ sessions }: House, visit: Visit, id?: string): HostSession | undefined {
  const named = visit.req.headers['mcp-session-id'];
  if (typeof named !== 'string') {
    invalid(visit, 400, 'the Mcp-Session-Id header is missing; begin a session with initialize', id);
    return undefined;
  }
  const session = sessions.find(named, visit.principal);
  if (session && session.scope === visit.scope && session.door === 'http') return session;
  invalid(visit, 404, 'there is no such session here, or it has ended; begin a new one with initialize', id);
  return undefined;
}

/** The header is optional, but one that is sent must name a version we speak. */
export function speaksOurVersion(visit: Visit): boolean {
  const version = visit.req.headers['mcp-protocol-version'];
  if (version === undefined || (typeof version === 'string' && eraOf(version))) return true;
  invalid(visit, 400, `the MCP-Protocol-Version is not supported; supported are ${ERAS.join(', ')}`);
  return false;
}
