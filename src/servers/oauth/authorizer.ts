// The headers by which a remote server lets a request in, and what is done when it does not: renew the token, or say that a
// person must log in. Headers of the configuration are always sent; a token replaces an `Authorization` among them.

import { computeScopeUnion, isStrictScopeSuperset } from '@modelcontextprotocol/client';
import type { RemoteServer } from '../../config/schema.ts';
import type { Leases } from '../../store/lease.ts';
import type { Authorizer } from '../remote/authorizer.ts';
import { refusalOf } from './challenge.ts';
import { renew } from './renewal.ts';
import type { Account, Challenge, Grant, Vault, Versioned } from './vault.ts';

export type AuthorizerPorts = { readonly vault: Vault; readonly leases: Leases };

/** A token is renewed this long before its end, or in the last tenth of a short life. */
const MARGIN_MS = 60_000;
/** For so long after a new token a refusal may still be about the token before it. */
const GRACE_MS = 5_000;
const MAX_STEP_UPS = 3;
const STEP_UPS_MS = 60_000;

/** Its `headers` and `challenged` reject when a new token is needed and the renewal fails for now. */
export function authorizerOf(ports: AuthorizerPorts, server: RemoteServer, principal: string): Authorizer {
  const { vault } = ports;
  const account: Account = { server: server.name, resource: server.url, principal };
  const isMachine = server.oauth.grant === 'client_credentials';
  let renewing: Promise<Versioned<Grant> | undefined> | undefined;
  let handed: string | undefined;
  let switchedAt = Number.NEGATIVE_INFINITY;
  let stepUps: number[] = [];

  /** One at a time in this process too: all requests wait for the same renewal. */
  function renewal(stale: Versioned<Grant> | undefined, scope?: string): Promise<Versioned<Grant> | undefined> {
    renewing ??= renew({ ...ports, server, account, scope }, stale).finally(() => {
      renewing = undefined;
    });
    return renewing;
  }

  async function current(): Promise<Versioned<Grant> | undefined> {
    const found = vault.grant(account);
    if (found && !isDue(found.value)) return found;
    if (!found && (!isMachine || !vault.challenge(account))) return undefined;
    try {
      return await renewal(found);
    } catch (error) {
      if (found && !isOver(found.value)) return found; // it is valid for a little while yet
      throw error;
    }
  }

  async function remember(challenge: Challenge): Promise<void> {
    const known = vault.challenge(account);
    const next = { ...known, ...challenge };
    if (JSON.stringify(known) !== JSON.stringify(next)) await vault.saveChallenge(account, next);
  }

  async function unauthorized(): Promise<boolean> {
    const found = vault.grant(account);
    if (found && handed !== undefined && found.version !== handed) return true; // the refusal was about an older token
    if (found && performance.now() - switchedAt < GRACE_MS) return true;
    return (found || isMachine) && (await renewal(found)) !== undefined;
  }

  /** A refresh cannot add scopes, so only `client_credentials` can do so without a person. */
  async function stepUp({ scope }: Challenge): Promise<boolean> {
    const found = vault.grant(account);
    const wanted = computeScopeUnion(found?.value.scope, vault.challenge(account)?.scope, scope);
    await remember(wanted ? { scope: wanted } : {});
    const isCovered = !isStrictScopeSuperset(wanted, found?.value.scope);
    stepUps = stepUps.filter((at) => performance.now() - at < STEP_UPS_MS);
    if (stepUps.length >= MAX_STEP_UPS || !found || !(isMachine || isCovered)) return false;
    stepUps.push(performance.now());
    return (await renewal(found, wanted)) !== undefined;
  }

  return {
    async headers() {
      const found = await current();
      if (found && handed !== found.version) {
        if (handed !== undefined) switchedAt = performance.now();
        handed = found.version;
      }
      return found ? withToken(server.headers, found.value.tokens.access_token) : server.headers;
    },
    async challenged(response) {
      const refusal = refusalOf(response);
      if (!refusal) return false;
      if (refusal.kind === 'unauthorized') await remember(refusal.challenge);
      return refusal.kind === 'unauthorized' ? unauthorized() : stepUp(refusal.challenge);
    },
  };
}

const isOver = ({ expiresAt = Number.POSITIVE_INFINITY }: Grant): boolean => Date.now() >= expiresAt;

function isDue({ obtainedAt, expiresAt }: Grant): boolean {
  if (expiresAt === undefined) return false;
  return Date.now() >= expiresAt - Math.min(MARGIN_MS, (expiresAt - obtainedAt) / 10);
}

function withToken(headers: Record<string, string>, token: string): Record<string, string> {
  const others = Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'authorization');
  return { ...Object.fromEntries(others), authorization: `Bearer ${token}` };
}
