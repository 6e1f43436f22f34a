// `import`: servers another client has configured. It shows what it will add, asks, and never overwrites a name.

import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { readDocument } from '../../config/file/document.ts';
import { addServer } from '../../config/file/edit.ts';
import { type Foreign, type ForeignServer, readForeign } from '../../config/hosts/foreign.ts';
import type { ServerDefinition } from '../../config/schema.ts';
import { agrees } from '../terminal/dialog.ts';
import { commandText } from '../terminal/quoting.ts';
import { flat, wholeTable } from '../terminal/table.ts';
import { type Cli, OK } from '../verb.ts';
import { configFile, tellDaemon } from './servers.ts';

export type ImportOptions = { readonly yes?: boolean; readonly dryRun?: boolean; readonly config?: string };

const ASKS = 'import asks before it adds; without a terminal say --yes';

export async function importServers(cli: Cli, source: string, options: ImportOptions): Promise<number> {
  const { output, env } = cli;
  const file = await configFile(cli, options.config);
  const foreign = readForeign(source, { home: homedir(), cwd: process.cwd(), platform: process.platform, env });
  const known = namesIn(file);
  const fresh = foreign.servers.filter(({ name, definition }) => !known.has(name) && !isTroupe(definition));
  const skipped = [
    ...foreign.skipped,
    ...foreign.servers
      .filter(({ definition }) => isTroupe(definition))
      .map(({ name }) => ({ name, why: 'it is troupe itself' })),
    ...foreign.servers
      .filter(({ name }) => known.has(name))
      .map(({ name }) => ({ name, why: `${file} has it already` })),
  ];
  const plan = { from: foreign.from, config: file, added: fresh.map(({ name }) => name), skipped };
  show(cli, fresh, plan);
  if (fresh.length === 0 || options.dryRun) {
    if (output.json) output.print(JSON.stringify({ ...plan, added: [], wouldAdd: plan.added }));
    return OK;
  }
  if (!options.yes && !(await agrees(cli, `add ${fresh.length} to ${file}?`, ASKS))) {
    output.say('nothing was added');
    return OK;
  }
  for (const { name, definition } of fresh) addServer(file, name, definition);
  return tellDaemon(cli, { done: `added ${plan.added.join(', ')} to ${file}`, change: plan });
}

/** The entry that `troupe install` writes. */
function isTroupe(definition: ServerDefinition): boolean {
  if (!('command' in definition))
    return /^https?:\/\/(127\.0\.0\.1|localhost)(:\d+)?\/mcp(\/@?[\w-]+)?$/.test(definition.url);
  const { command, args = [] } = definition;
  const program = [command, ...args].findIndex((word) => /(^|[\\/])(troupe|dist[\\/]src[\\/]main\.js)$/.test(word));
  return program >= 0 && [command, ...args][program + 1] === 'connect';
}

type Plan = Pick<Foreign, 'from' | 'skipped'>;

function show({ output }: Cli, fresh: readonly ForeignServer[], { from, skipped }: Plan): void {
  if (output.json) return;
  output.say(from.length > 0 ? `from ${from.join(', ')}` : 'no configuration of it was found on this machine');
  const columns = [
    { title: 'SERVER', elastic: true },
    { title: 'WHAT RUNS', elastic: true },
    { title: 'VARIABLES', elastic: true },
  ];
  if (fresh.length > 0)
    output.print(
      wholeTable(
        output,
        columns,
        fresh.map(({ name, definition }) => [name, ...whatRuns(definition)]),
      ),
    );
  else output.say('nothing new to add');
  for (const { name, notes } of fresh) for (const note of notes) output.say(`note: ${name}: ${flat(note)}`);
  for (const { name, why } of skipped) output.say(`skipped: ${name}: ${flat(why)}`);
}

/** The command line or the address, and the names of the variables or headers: their values may be secrets. */
function whatRuns(definition: ServerDefinition): [string, string] {
  if ('url' in definition)
    return [definition.url.replace(/\?.*$/, '?…'), Object.keys(definition.headers ?? {}).join(' ')];
  const { command, args = [], env = {} } = definition;
  return [commandText([command, ...args]), Object.keys(env).join(' ')];
}

/** The names that are taken, also in a file with mistakes. */
function namesIn(file: string): Set<string> {
  const root = existsSync(file) ? (readDocument(file).value as { mcpServers?: object } | undefined) : undefined;
  return new Set(Object.keys(root?.mcpServers ?? {}));
}
