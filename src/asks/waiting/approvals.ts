// Which calls wait until somebody lets them pass: those the configuration names, and no others. What was approved once stays so
// while its definition is the same.

import { hash } from 'node:crypto';
import type { Call } from '../../calls/call.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import type { Entry } from '../../catalog/fetch.ts';
import { glob } from '../../catalog/patterns.ts';
import type { Approve, ServerSettings } from '../../config/schema.ts';
import { sentence } from '../../protocol/failures.ts';
import { spansOf } from '../../protocol/json.ts';
import type { Member } from '../../servers/member.ts';
import { refusal } from '../../servers/policy.ts';
import { meaningOf } from '../../servers/states.ts';
import type { Store } from '../../store/store.ts';
import type { World } from '../../world/world.ts';

/** `defer`: that is known once the server has said what it offers. */
export type Need = 'clear' | 'ask' | 'defer';
/** What the first rule that fits says of a tool, and what that means for the tool as it is defined now. */
type Verdict = { readonly when: Approve['when']; readonly isAsked: boolean; readonly fingerprint: string };
type Judged = {
  readonly settings: ServerSettings;
  readonly entries: readonly Entry[];
  readonly rules: readonly { readonly fits: (tool: string) => boolean; readonly when: Approve['when'] }[];
  readonly definitions: ReadonlyMap<string, readonly Buffer[]>;
  readonly verdicts: Map<string, Verdict>;
};

export type ApprovalsOptions = {
  readonly catalog: Catalog;
  readonly store: Pick<Store, 'get' | 'commit'>;
  readonly world: World;
};

/** If a server that is ready has not said within this time what it offers, a person is asked instead. */
const LIST_MS = 5_000;
const MAX_REMEMBERED = 10_000;
const NEVER: Verdict = { when: 'never', isAsked: false, fingerprint: '' };

export function createApprovals({ catalog, store, world }: ApprovalsOptions) {
  const judged = new WeakMap<Member, Judged>();
  const given = new Map<string, string>(); // spares a look into the database, and stands in for it where it cannot be written

  /** On the path of every call: a tool that needs nobody's word costs a look at its list and one into a table. */
  function needOf(member: Member, call: Call): Need {
    // A call that was sent in an earlier life and is only followed was approved then.
    if (call.method !== 'tools/call' || call.door === 'troupe' || call.upstream !== undefined) return 'clear';
    if (member.config.settings.approve.length === 0) return 'clear';
    const verdict = verdictOf(member, call.name);
    if (verdict.when === 'never') return 'clear';
    return isSettled(member, verdict) || !mayBeListed(member) ? decide(member, call) : 'defer';
  }

  function verdictOf(member: Member, tool: string): Verdict {
    const { settings } = member.config;
    const own = catalog.get(member.name, 'tools');
    const { entries } = own.hash === '' ? catalog.get(member.server, 'tools') : own;
    let table = judged.get(member);
    if (table?.settings !== settings || table.entries !== entries) {
      table = tableOf(settings, entries);
      judged.set(member, table);
    }
    return table.verdicts.get(tool) ?? judge(table, tool);
  }

  /** The list at hand may be of an earlier life; a tool whose definition counts is looked up in the present one. */
  function isSettled({ name, server }: Member, { when }: Verdict): boolean {
    if (when === 'always') return true;
    const own = catalog.get(name, 'tools');
    return own.isFresh || (own.hash === '' && catalog.get(server, 'tools').isFresh);
  }

  /** The server is on its way, or has just come. */
  function mayBeListed({ state, since, lane }: Member): boolean {
    if (state === 'ready') return world.date() - since < LIST_MS;
    return meaningOf(state).isComing || (meaningOf(state).isLeaving && lane.gate.mode === 'hold');
  }

  function decide(member: Member, call: Call): 'clear' | 'ask' {
    const { when, isAsked, fingerprint } = verdictOf(member, call.name);
    if (!isAsked || (when === 'once' && isGiven(call, fingerprint))) return 'clear';
    // Nobody is asked about a call that would not be sent: its lane says why.
    const isClosed = (member.pool?.processes() ?? [member]).every(({ lane }) => lane.gate.mode === 'refuse');
    return isClosed || refusal(member, catalog, call) ? 'clear' : 'ask';
  }

  function isGiven(call: Call, fingerprint: string): boolean {
    const key = keyOf(call);
    if (fingerprint === '' || given.get(key) === fingerprint) return fingerprint !== '';
    if (recordedFor(call) !== fingerprint) return false;
    remember(key, fingerprint);
    return true;
  }

  function recordedFor({ principal, server, name }: Call): string | undefined {
    try {
      return store.get<{ fingerprint: string }>('approval', [principal, server, name])?.fingerprint;
    } catch {
      return undefined; // an approval that cannot be looked up is asked for again
    }
  }

  function remember(key: string, fingerprint: string): void {
    if (given.size >= MAX_REMEMBERED) given.clear();
    given.set(key, fingerprint);
  }

  return {
    needOf,
    decide,
    /** Whether the list at hand is the server's present one, or no other will come. */
    isListed: (member: Member): boolean => catalog.get(member.name, 'tools').isFresh || !mayBeListed(member),
    /** How long a server that is ready may still take to say what it offers. */
    listMs: ({ since }: Member): number => Math.max(0, since + LIST_MS - world.date()) + 1,
    /** What else an approval of this call is good for; empty when the next one is asked about again. */
    onceOf: (member: Member, call: Call): string => verdictOf(member, call.name).fingerprint,
    /** Resolves when the approval is on the disk, or cannot be: then it is good for as long as this daemon runs. */
    async keep({ logger }: Member, call: Call, fingerprint: string): Promise<void> {
      const row = [call.principal, call.server, call.name, fingerprint, world.date()];
      try {
        await store.commit('addApproval', row);
      } catch (error) {
        logger.warn(`an approval was not kept: ${sentence(error)}`);
      }
      remember(keyOf(call), fingerprint);
    },
  };
}

const keyOf = ({ principal, server, name }: Call): string => `${principal}\n${server}\n${name}`;

function tableOf(settings: ServerSettings, entries: readonly Entry[]): Judged {
  const definitions = new Map<string, Buffer[]>();
  for (const { name, bytes } of entries) {
    const others = definitions.get(name);
    if (others) others.push(bytes);
    else definitions.set(name, [bytes]);
  }
  const rules = settings.approve.map(({ tools, when }) => ({ fits: glob(tools), when }));
  return { settings, entries, rules, definitions, verdicts: new Map() };
}

/** Kept for what is listed only: a caller may make up any number of names. Of a name listed twice both definitions count. */
function judge({ rules, definitions, verdicts }: Judged, tool: string): Verdict {
  const when = rules.find(({ fits }) => fits(tool))?.when ?? 'never';
  if (when === 'never') return NEVER;
  const found = definitions.get(tool);
  if (!found) return { when, isAsked: true, fingerprint: '' };
  const isAsked = when !== 'destructive' || found.some(mayDestroy);
  const fingerprint = when === 'once' ? hash('sha256', Buffer.concat(found), 'base64url') : '';
  const verdict = { when, isAsked, fingerprint };
  verdicts.set(tool, verdict);
  return verdict;
}

/** By the letter of MCP: a tool that says nothing of itself may destroy. Of a hint given twice, either could be meant. */
function mayDestroy(definition: Buffer): boolean {
  const [annotations, others] = membersOf(definition, 'annotations');
  if (!annotations || others) return true;
  const says = (hint: string, value: string): boolean => {
    const [said, another] = membersOf(annotations, hint);
    return !another && said?.toString('latin1') === value;
  };
  return !says('readOnlyHint', 'true') && !says('destructiveHint', 'false');
}

const membersOf = (object: Buffer, name: string): Buffer[] =>
  spansOf(object, name).map(({ from, to }) => object.subarray(from, to));
