// `inbox`: the questions that wait for somebody, oldest first; and with `-f` each of them as it comes and goes.

import type { AskView } from '../asks/ask.ts';
import { TroupeError } from '../protocol/failures.ts';
import { member } from '../protocol/json.ts';
import { gist, kindOf, oneLine, shortId } from './answer-words.ts';
import { type Control, withControl } from './control.ts';
import type { Output } from './output.ts';
import { ago, cut, table } from './table.ts';
import { type Cli, OK } from './verb.ts';

export type InboxOptions = { readonly follow?: boolean };
export type Listed = { readonly raw: Buffer; readonly version: number; readonly asks: readonly AskView[] };

const NOBODY_WAITS = 'no questions are waiting';
const TICK_MS = 1_000;

export async function inbox(cli: Cli, options: InboxOptions): Promise<number> {
  return withControl(cli.paths.socket, async (control) => {
    if (options.follow) return follow(cli, control);
    const { raw, asks } = await openAsks(control);
    if (cli.output.json) cli.output.print(raw);
    else if (asks.length > 0) cli.output.print(listing(cli.output, asks));
    else cli.output.say(NOBODY_WAITS);
    return OK;
  });
}

/** What is open; with `since`, as soon as it differs from that version, or after some seconds as it is. */
export async function openAsks(control: Control, since?: number): Promise<Listed> {
  const reply = await control.request('inbox', since === undefined ? {} : { since }).result;
  const raw = member(reply, 'asks') ?? Buffer.from('[]');
  return { raw, version: Number(member(reply, 'version')?.toString()), asks: JSON.parse(raw.toString()) };
}

/** Two lines a question: where it comes from, and what it says. */
function listing(output: Output, asks: readonly AskView[], now = Date.now()): string {
  const columns = [
    { title: 'ID' },
    { title: 'AGE', right: true },
    { title: 'EXPIRES', right: true },
    { title: 'KIND' },
    { title: 'SERVER', elastic: true },
    { title: 'TOOL', elastic: true },
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

/** Until Ctrl-C, which is how one stops to follow and no failure. */
async function follow({ output }: Cli, control: Control): Promise<number> {
  const isRedrawn = output.isTerminal && !output.json && process.env.TERM !== 'dumb';
  const show = output.json ? arrays(output) : isRedrawn ? screen(output) : lines(output);
  let isOver = false;
  const stop = (): void => {
    isOver = true;
    control.close();
  };
  process.on('SIGINT', stop);
  try {
    for (let now = await openAsks(control); ; now = await openAsks(control, now.version)) show.update(now);
  } catch (error) {
    if (isOver) return OK;
    if (error instanceof TroupeError && error.code === 'lost')
      throw new TroupeError('unavailable', 'troupe has stopped; start it with `troupe up`, and follow again');
    throw error;
  } finally {
    process.off('SIGINT', stop);
    show.end();
  }
}

type Show = { readonly update: (listed: Listed) => void; readonly end: () => void };

/** For programs: the whole array, once for each version of it. */
function arrays(output: Output): Show {
  let shown: number | undefined;
  const update = ({ raw, version }: Listed): void => {
    if (version !== shown) output.print(raw);
    shown = version;
  };
  return { update, end: () => {} };
}

/** For pipes: a line when a question opens, when something else is wanted of it, and when it is gone. */
function lines(output: Output): Show {
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

/** For eyes: the list where it stands, its times moving; as much of it as the window is high. */
function screen(output: Output): Show {
  const { stdout } = process;
  let asks: readonly AskView[] = [];
  let erase = '';
  const draw = (): void => {
    const text =
      asks.length > 0 ? listing({ ...output, width: Math.max(40, stdout.columns || 80) }, asks) : NOBODY_WAITS;
    const all = text.split('\n');
    const room = Math.max(4, (stdout.rows || 24) - 2);
    const shown = all.length > room ? [...all.slice(0, room - 1), `… ${all.length - room + 1} more lines`] : all;
    output.print(`${erase}${shown.join('\n')}`);
    erase = `\x1b[${shown.length}A\r\x1b[J`;
  };
  // Lines that were cut for another width have wrapped, and nobody knows where the list begins.
  const resized = (): void => {
    erase = '\x1b[H\x1b[2J';
    draw();
  };
  stdout.on('resize', resized);
  const timer = setInterval(draw, TICK_MS);
  return {
    update(listed) {
      asks = listed.asks;
      draw();
    },
    end() {
      clearInterval(timer);
      stdout.off('resize', resized);
    },
  };
}
