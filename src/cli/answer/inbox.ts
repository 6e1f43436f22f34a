// `inbox`: the open questions, oldest first; with `-f` each of them as it opens and closes.

import type { AskView } from '../../asks/ask.ts';
import { member } from '../../protocol/json.ts';
import { type Control, withControl } from '../control.ts';
import { follow, isRedrawn, openScreen, type Show } from '../terminal/screen.ts';
import { ago, cut, table } from '../terminal/table.ts';
import { gist, kindOf, oneLine, shortId } from '../terminal/words.ts';
import { type Cli, OK, type Output } from '../verb.ts';

export type InboxOptions = { readonly follow?: boolean };
export type Listed = { readonly raw: Buffer; readonly version: number; readonly asks: readonly AskView[] };

const NOBODY_WAITS = 'no questions are waiting';

export async function inbox(cli: Cli, options: InboxOptions): Promise<number> {
  return withControl(cli.paths.socket, async (control) => {
    if (options.follow) return followAsks(cli, control);
    const { raw, asks } = await openAsks(control);
    if (cli.output.json) cli.output.print(raw);
    else if (asks.length > 0) cli.output.print(listing(cli.output, asks));
    else cli.output.say(NOBODY_WAITS);
    return OK;
  });
}

/** The open questions. With `since` the daemon answers once they differ from that version, or after some seconds. */
export async function openAsks(control: Control, since?: number): Promise<Listed> {
  const reply = await control.request('inbox', since === undefined ? {} : { since }).result;
  const raw = member(reply, 'asks') ?? Buffer.from('[]');
  return { raw, version: Number(member(reply, 'version')?.toString()), asks: JSON.parse(raw.toString()) };
}

/** In a narrow terminal so much of a name is worth more than the times. */
const NAME = 16;

/** Two lines a question: where it comes from, and what it says. */
function listing(output: Output, asks: readonly AskView[], now = Date.now()): string {
  const columns = [
    { title: 'ID' },
    { title: 'AGE', right: true, spare: 2 },
    { title: 'EXPIRES', right: true, spare: 1 },
    { title: 'KIND' },
    { title: 'SERVER', elastic: true, least: NAME },
    { title: 'TOOL', elastic: true, least: NAME },
  ];
  const rows = asks.map((ask) => [
    shortId(ask.id),
    ago(now - ask.openedAt),
    `in ${ago(ask.expiresAt - now)}`,
    kindOf(ask),
    oneLine(ask.server),
    oneLine(ask.tool) || '-',
  ]);
  const [titles = '', ...lines] = table(output, columns, rows).split('\n');
  const said = asks.map((ask) => output.paint('dim', cut(`          ${gist(ask)}`, output.width)));
  return [titles, ...lines.flatMap((line, index) => [line, said[index] ?? ''])].join('\n');
}

function followAsks({ output }: Cli, control: Control): Promise<number> {
  const show = output.json ? arrays(output) : isRedrawn(output) ? screen(output) : lines(output);
  return follow(control, show, async function* () {
    for (let now = await openAsks(control); ; now = await openAsks(control, now.version)) yield now;
  });
}

/** For programs: the whole array, once for each version of it. */
function arrays(output: Output): Show<Listed> {
  let shown: number | undefined;
  const update = ({ raw, version }: Listed): void => {
    if (version !== shown) output.print(raw);
    shown = version;
  };
  return { update, end: () => {} };
}

/** For pipes: a line when a question opens, when something else is wanted of it, and when it is gone. */
function lines(output: Output): Show<Listed> {
  let known = new Map<string, AskView>();
  const told = (what: string, ask: AskView, more = ''): void =>
    output.print(`${new Date().toTimeString().slice(0, 8)} ${what} ${shortId(ask.id)} ${kindOf(ask)}${more}`);
  const update = ({ asks }: Listed): void => {
    const now = new Map(asks.map((ask) => [ask.id, ask]));
    for (const ask of known.values()) if (!now.has(ask.id)) told('closed', ask, ` of ${oneLine(ask.server)}`);
    for (const ask of asks) {
      const before = known.get(ask.id);
      if (before?.stage === ask.stage) continue;
      told(before ? 'changed' : 'opened', ask, `: ${cut(gist(ask), 400)}`);
    }
    known = now;
  };
  return { update, end: () => {} };
}

/** For eyes: the list redrawn in place, its times moving; as much of it as the window is high. */
function screen(output: Output): Show<Listed> {
  let asks: readonly AskView[] = [];
  const { draw, end } = openScreen(output, (width, height) => {
    const text = asks.length > 0 ? listing({ ...output, width: Math.max(40, width) }, asks) : NOBODY_WAITS;
    const all = text.split('\n');
    const room = Math.max(4, height - 1);
    return all.length > room ? [...all.slice(0, room - 1), `… ${all.length - room + 1} more lines`] : all;
  });
  const update = (listed: Listed): void => {
    asks = listed.asks;
    draw();
  };
  return { update, end };
}
