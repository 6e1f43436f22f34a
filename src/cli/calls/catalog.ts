// `tools`, `resources`, `templates`, `prompts`: what the servers offer, as the daemon's catalog has it.

import { TroupeError } from '../../protocol/failures.ts';
import { withControl } from '../control.ts';
import { type Column, flat, table } from '../terminal/table.ts';
import { type Cli, OK, type Output } from '../verb.ts';

export type Kind = 'tools' | 'resources' | 'templates' | 'prompts';

type Item = {
  readonly name?: string;
  readonly title?: string;
  readonly description?: string;
  readonly uri?: string;
  readonly uriTemplate?: string;
  readonly inputSchema?: { properties?: Record<string, unknown>; required?: unknown };
  readonly arguments?: readonly { name: string; required?: boolean }[];
};
export type Listing = {
  readonly items: readonly { readonly server: string; readonly item: Item }[];
  readonly missing: readonly { readonly server: string; readonly state: string; readonly why?: string | null }[];
};

export async function list({ output, paths }: Cli, kind: Kind, server: string | undefined): Promise<number> {
  const raw = await withControl(
    paths.socket,
    (control) => control.request('list', { kind, ...(server === undefined ? {} : { server }) }).result,
  );
  const { items, missing } = JSON.parse(raw.toString()) as Listing;
  const absent = missing.map(absence);
  if (server !== undefined && items.length === 0 && absent.length > 0) {
    const [{ state, why } = { state: '', why: null }] = missing;
    // A server that is ready and gives no list has said why.
    const remedy = state === 'ready' && why ? '' : 'try again in a moment, or ';
    throw new TroupeError('unavailable', `${absent.join('; ')}; ${remedy}see \`troupe logs ${server}\``);
  }
  if (output.json) output.print(raw);
  else if (items.length > 0) output.print(listing(output, kind, items, server === undefined));
  else output.say(`no ${kind}${server === undefined ? '' : ` on ${server}`}`);
  for (const line of absent) output.say(`not listed: ${line}`);
  return OK;
}

function absence({ server, state, why }: Listing['missing'][number]): string {
  const reason = why ? `: ${flat(why)}` : '';
  return state === 'ready' && reason ? `${server}${reason}` : `${server} is ${state}${reason}`;
}

/** The server's name stands in each row only where there may be several. */
function listing(output: Output, kind: Kind, items: Listing['items'], isMixed: boolean): string {
  const { columns, row } = LAYOUTS[kind];
  const titles = [...(isMixed ? ['SERVER'] : []), ...columns].map(
    (title): Column => ({ title, elastic: GIVES_WAY.has(title) }),
  );
  const rows = items.map(({ server, item }) => [...(isMixed ? [server] : []), ...row(item)]);
  // Only a terminal limits the width: a program gets whole words.
  return table(output.isTerminal ? output : { ...output, width: Number.POSITIVE_INFINITY }, titles, rows);
}

/** Columns that are cut first: the others hold words that the user must type. */
const GIVES_WAY = new Set(['ARGUMENTS', 'DESCRIPTION']);

const LAYOUTS: Record<Kind, { columns: string[]; row: (item: Item) => string[] }> = {
  tools: {
    columns: ['TOOL', 'ARGUMENTS', 'DESCRIPTION'],
    row: (item) => [item.name ?? '', toolArguments(item), about(item)],
  },
  resources: { columns: ['URI', 'NAME', 'DESCRIPTION'], row: (item) => [item.uri ?? '', item.name ?? '', about(item)] },
  templates: {
    columns: ['TEMPLATE', 'NAME', 'DESCRIPTION'],
    row: (item) => [item.uriTemplate ?? '', item.name ?? '', about(item)],
  },
  prompts: {
    columns: ['PROMPT', 'ARGUMENTS', 'DESCRIPTION'],
    row: (item) => [item.name ?? '', promptArguments(item), about(item)],
  },
};

const about = ({ description, title }: Item): string => description ?? title ?? '';
const optional = (name: string, isRequired: boolean): string => (isRequired ? name : `[${name}]`);

function toolArguments({ inputSchema }: Item): string {
  const required = Array.isArray(inputSchema?.required) ? inputSchema.required : [];
  return Object.keys(inputSchema?.properties ?? {})
    .map((name) => optional(name, required.includes(name)))
    .join(' ');
}

const promptArguments = (item: Item): string =>
  (item.arguments ?? []).map(({ name, required }) => optional(name, required === true)).join(' ');
