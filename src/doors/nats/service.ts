// A server as a micro service: its fixed endpoints, one for each tool while they are few, and true counts of both.

import { countRequest, type Endpoint, newEndpoint, type ServiceDescription } from '../../bus/micro.ts';
import { QUEUE, type Subjects, type Verb } from '../../bus/subjects.ts';
import type { Outcome } from '../../calls/call.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import type { Fleet } from '../../servers/fleet.ts';

export type Service = ReturnType<typeof serviceOf>;
type ServiceOptions = {
  readonly subjects: Subjects;
  readonly daemon: string;
  readonly fleet: Fleet;
  readonly catalog: Catalog;
};

/** Beyond so many tools their endpoints are not listed, so they need no counts either. */
const MAX_TOOLS = 256;

export function serviceOf(name: string, { subjects, daemon, fleet, catalog }: ServiceOptions) {
  const bare = subjects.patterns(name, daemon).filter(({ tree }) => tree === 'bare');
  const verbs = new Map(bare.map(({ verb, subject }) => [verb, newEndpoint(verb, subject, QUEUE)]));
  const tools = new Map<string, Endpoint>();

  const toolStats = (tool: string): Endpoint => {
    const known = tools.get(tool);
    if (known) return known;
    const made = newEndpoint(tool, subjects.call(name, tool), QUEUE, { tool });
    tools.set(tool, made);
    return made;
  };

  function count(verb: Verb, startedAt: number, error?: string): number {
    const nanoseconds = Math.round((performance.now() - startedAt) * 1e6);
    const stats = verbs.get(verb);
    if (stats) countRequest(stats, nanoseconds, error);
    return nanoseconds;
  }

  const description: ServiceDescription = {
    server: name,
    version: () => fleet.member(name)?.facts?.version ?? '0.0.0',
    description: `MCP server ${name}, run by troupe on ${daemon}`,
    metadata() {
      const member = fleet.member(name);
      const { entries, hash } = catalog.get(name, 'tools');
      return {
        troupe: '1',
        daemon,
        server: name,
        transport: member?.config.transport ?? 'stdio',
        state: member?.state ?? 'stopped',
        mcp_protocol: member?.facts?.era ?? '',
        tools: String(entries.length),
        tools_hash: hash.slice(0, 16),
      };
    },
    endpoints: () => [...verbs.values()],
    tools() {
      const { entries } = catalog.get(name, 'tools');
      return entries.length > MAX_TOOLS
        ? entries.map(() => NO_ENDPOINT)
        : entries.map((entry) => toolStats(entry.name));
    },
  };

  return {
    name,
    description,
    count,
    countCall(verb: Verb, tool: string, startedAt: number, outcome: Outcome): void {
      const error = outcome.ok ? undefined : outcome.failure.message;
      const nanoseconds = count(verb, startedAt, error);
      const { names } = catalog.get(name, 'tools');
      if (verb !== 'call' || names.size > MAX_TOOLS || !names.has(tool)) return;
      countRequest(toolStats(tool), nanoseconds, error);
    },
  };
}

const NO_ENDPOINT: Endpoint = newEndpoint('', '', QUEUE);
