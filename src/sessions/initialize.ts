// The answer to `initialize`: which version we speak with this host, what the servers behind its endpoint can do together,
// and what they want it to know. It is made of what is known now, and waits for no slow server.

import type { Facts } from '../catalog/facts.ts';
import { type ClientCapabilities, codecOf, type Era, eraOf, LATEST } from '../protocol/eras.ts';
import { TroupeError } from '../protocol/failures.ts';
import { isJsonObject } from '../protocol/json.ts';
import { NAME, VERSION } from '../protocol/version.ts';
import type { Member } from '../servers/member.ts';
import { isMany } from './scopes.ts';

export type Wanted = {
  readonly era: Era;
  readonly client: { readonly name?: unknown };
  readonly capabilities: ClientCapabilities;
};

/** A host's description of itself is kept with its session, so its size is bounded. */
const MAX_BYTES = 65_536;
const INSTRUCTION_CHARACTERS = 16_384;
/** Troupe runs tasks itself, whatever the servers can do. */
const TASKS = { list: {}, cancel: {}, requests: { tools: { call: {} } } };

/** What the host says of itself. A version that we do not know is answered with ours, as the specification wants it. */
export function readInitialize(params: Buffer): Wanted {
  if (params.length > MAX_BYTES || !isJsonObject(params))
    throw new TroupeError('invalid', 'initialize wants protocolVersion, capabilities and clientInfo');
  const { protocolVersion, capabilities, clientInfo } = JSON.parse(params.toString());
  if (typeof protocolVersion !== 'string')
    throw new TroupeError('invalid', 'initialize wants a protocolVersion such as 2025-11-25');
  const era = eraOf(protocolVersion) ?? LATEST;
  return {
    era,
    client: objectOf(clientInfo),
    capabilities: capabilitiesOf(capabilities, era),
  };
}

/** Of what a host says it can do only objects count: `null`, and whatever else is none, stands for what it cannot. */
export function capabilitiesOf(declared: unknown, era: Era): ClientCapabilities {
  const { elicitation, sampling, ...others } = objectsIn(declared);
  return codecOf(era).clientCapabilities({
    ...others,
    ...(elicitation && { elicitation: objectsIn(elicitation) }),
    ...(sampling && { sampling: objectsIn(sampling) }),
  });
}

export function initializeResult(era: Era, scope: string, members: readonly Member[]): Buffer {
  const [only] = members;
  const own = isMany(scope) ? undefined : only?.facts;
  const instructions = isMany(scope) ? instructionsOf(members) : own?.instructions;
  return Buffer.from(
    JSON.stringify({
      ...own?.others,
      protocolVersion: era,
      capabilities: {
        ...(own ? foreignCapabilities(own.capabilities) : experiments(members)),
        ...union(members.map(({ facts }) => facts)),
        ...(isMany(scope) && { logging: {} }), // troupe has something to say itself
        ...(codecOf(era).hasTasks && { tasks: TASKS }),
      },
      serverInfo: own?.info ?? { name: NAME, version: VERSION },
      ...(instructions && { instructions }),
    }),
  );
}

/** Capabilities that MCP has, of servers and of hosts: what they mean depends on who speaks for whom. */
const KNOWN = new Set(
  ['tools', 'resources', 'prompts', 'completions', 'logging', 'tasks'].concat('elicitation', 'sampling', 'roots'),
);

/** What a peer declares that troupe has no word for; only the other side knows what it means. */
export const foreignCapabilities = (declared: object): object =>
  Object.fromEntries(Object.entries(declared).filter(([name]) => !KNOWN.has(name)));

/** The experiments of all servers; of two with one name the first server's counts. */
function experiments(members: readonly Member[]): object {
  const all = members.map(({ facts }) => objectOf(facts?.capabilities.experimental));
  const experimental = Object.assign({}, ...all.reverse());
  return Object.keys(experimental).length > 0 ? { experimental } : {};
}

/** A server whose capabilities are not known yet may have any; a request that it cannot serve is refused later. */
function union(known: readonly (Facts | undefined)[]) {
  const has = (capability: string, option?: string) =>
    known.some((facts) => {
      const found = facts?.capabilities[capability];
      return !facts || (option === undefined ? found !== undefined : found?.[option] === true);
    });
  return {
    ...((has('tools') || known.length === 0) && { tools: { listChanged: true } }),
    ...(has('resources') && {
      resources: { listChanged: true, ...(has('resources', 'subscribe') && { subscribe: true }) },
    }),
    ...(has('prompts') && { prompts: { listChanged: true } }),
    ...(has('completions') && { completions: {} }),
    ...(has('logging') && { logging: {} }),
  };
}

function instructionsOf(members: readonly Member[]): string {
  return members
    .filter(({ facts }) => facts?.instructions)
    .map(({ server, facts }) => `# ${server}\n\n${facts?.instructions?.slice(0, INSTRUCTION_CHARACTERS)}`)
    .join('\n\n');
}

const objectOf = (value: unknown): object => (isObject(value) ? value : {});
const objectsIn = (value: unknown): Record<string, object> =>
  Object.fromEntries(Object.entries(objectOf(value)).filter(([, each]) => isObject(each)));
const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
