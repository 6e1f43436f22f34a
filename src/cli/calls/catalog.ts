// `tools`, `resources`, `templates`, `prompts`: what the servers offer, as the daemon's catalog has it; or one of them in full.

import { TroupeError } from '../../protocol/failures.ts';
import { elements, member } from '../../protocol/json.ts';
import { withControl } from '../control.ts';
import { type Column, flat, table } from '../terminal/table.ts';
import { type Cli, OK, type Output } from '../verb.ts';
import { definitionIn, definitionText, type Item, type Kind, type Listing } from './definition.ts';

export async function list(
  { output, paths }: Cli,
  kind: Kind,
  server: string | undefined,
  name?: string,
): Promise<number> {
  const raw = await withControl(
    paths.socket,
    (control) => control.request('list', { kind, ...(server === undefined ? {} : { server }) }).result,
  );
  const listed = JSON.parse(raw.toString()) as Listing;
  const { items, missing } = listed;
  const absent = missing.map(absence);
  if (server !== undefined && items.length === 0 && absent.length > 0) {
    const [{ state, why } = { state: '', why: null }] = missing;
    // A server that is ready and gives no list has said why.
    const remedy = state === 'ready' && why ? '' : 'try again in a moment, or ';
    throw new TroupeError('unavailable', `${absent.join('; ')}; ${remedy}see \`troupe logs ${server}\``);
  }
  if (server !== undefined && name !== undefined) {
    const index = definitionIn(listed, kind, server, name);
    const item = items[index]?.item ?? {};
    output.print(output.json ? definitionAt(raw, index) : definitionText(output, kind, server, item));
    return OK;
  }
  if (output.json) output.print(raw);
  else if (items.length > 0) output.print(listing(output, kind, items, server === undefined));
  else output.say(`no ${kind}${server === undefined ? '' : ` on ${server}`}`);
  for (const line of absent) output.say(`not listed: ${line}`);
  if (items.length > 0 && output.isTerminal) output.say(`\`troupe ${kind} <server> <name>\` shows one in full`);
  return OK;
}

/** As the server wrote it. */
function definitionAt(raw: Buffer, index: number): Buffer {
  const listed = [...elements(member(raw, 'items') ?? Buffer.from('[]'))][index];
  return (listed && member(listed, 'item')) ?? Buffer.from('{}');
}

function absence({ server, state, why }: Listing['missing'][number]): string {
  const reason = why ? `: ${flat(why)}` : '';
  return state === 'ready' && reason ? `${server}${reason}` : `${server} is ${state}${reason}`;
}

/** The server's name stands in each row only where there may be several. */
function listing(output: Output, kind: Kind, items: Listing['items'], isMixed: boolean): string {
  const { columns, row } = LAYOUTS[kind];
  const titles = [...(isMixed ? ['SERVER'] : []), ...columns].map((title): Column => ({ title, ...GIVES_WAY[title] }));
  const rows = items.map(({ server, item }) => [...(isMixed ? [server] : []), ...row(item)]);
  // Only a terminal limits the width: a program gets whole words.
  return table(output.isTerminal ? output : { ...output, width: Number.POSITIVE_INFINITY }, titles, rows);
}

/** Columns that are cut first, or left out: the others hold words that the user must type. */
const GIVES_WAY: Record<string, Omit<Column, 'title'>> = {
  NAME: { elastic: true, least: 12, spare: 2 },
  ARGUMENTS: { elastic: true, least: 10, spare: 2 },
  DESCRIPTION: { elastic: true, least: 16, spare: 1 },
};

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
