// `status`, `ps`, `env`: the daemon, its bus and its servers as they are now. `start`, `stop`, `restart`: one server, and its
// state afterwards.

import { withControl } from '../control.ts';
import { quotedWord } from '../terminal/quoting.ts';
import { ago, bytes, type Cell, type Column, columnsOf, flat, fold, table } from '../terminal/table.ts';
import { type Cli, FAILED, OK, type Output, type Style } from '../verb.ts';
import type { ServerStatus, Status } from './running.ts';
import { troubleText } from './trouble.ts';

export async function status({ output, paths }: Cli): Promise<number> {
  const raw = await withControl(paths.socket, (control) => control.request('status', {}).result);
  if (output.json) {
    output.print(raw);
    return OK;
  }
  const now = JSON.parse(raw.toString()) as Status;
  output.print(`${summary(output, now)}\n\n`);
  if (now.servers.length > 0) await printServers(output, [...PS, ...COUNTS], now.servers, paths.logFile);
  else output.print('no servers yet: add one with `troupe add <name> -- <command>`, or `troupe import`');
  return OK;
}

/** One line a server, and below them what troubles those that are not ready. */
export async function ps({ output, paths }: Cli): Promise<number> {
  const { servers } = await withControl(paths.socket, (control) => control.ask('status'));
  if (output.json) output.print(JSON.stringify(servers));
  else if (servers.length > 0) await printServers(output, PS, servers, paths.logFile);
  else output.say('no servers are configured; add one with `troupe add <name> -- <command>`');
  return OK;
}

export async function env({ output, paths }: Cli): Promise<number> {
  const raw = await withControl(paths.socket, (control) => control.request('env', {}).result);
  if (output.json) output.print(raw);
  else
    for (const [name, value] of Object.entries(JSON.parse(raw.toString()) as Record<string, string>))
      output.print(`${name}=${quotedWord(value)}\nexport ${name}`); // two lines, so that the assignment can be used without the export
  return OK;
}

type ServerColumn = Column & { readonly cell: (server: ServerStatus) => Cell };

const count = (title: string, spare: number, cell: (server: ServerStatus) => number | null): ServerColumn => ({
  title,
  spare,
  right: true,
  cell: (server) => String(cell(server) ?? 0),
});
/** What a person came for is the name and the state; the rest goes where there is no room for it. */
const PS: readonly ServerColumn[] = [
  { title: 'SERVER', elastic: true, least: 24, cell: ({ name }) => name },
  { title: 'STATE', cell: ({ state }) => ({ text: state, style: styleOf(state) }) },
  { title: 'SINCE', right: true, spare: 1, cell: ({ since: when }) => since(when) },
  { title: 'PID', right: true, spare: 5, cell: ({ pid }) => String(pid ?? '-') },
  count('RETRIES', 2, ({ restarts }) => restarts),
  count('IN FLIGHT', 6, ({ inFlight }) => inFlight),
];
const COUNTS: readonly ServerColumn[] = [
  count('TOOLS', 4, ({ tools }) => tools),
  count('CALLS', 7, ({ calls }) => calls),
  count('ERRORS', 3, ({ errors }) => errors),
];

async function printServers(
  output: Output,
  columns: readonly ServerColumn[],
  servers: readonly ServerStatus[],
  logFile: string,
): Promise<void> {
  const rows = servers.map((server) => columns.map(({ cell }) => cell(server)));
  output.print(table(output, columns, rows));
  const trouble = await troubleText(output, servers, logFile);
  if (trouble) output.print(`\n${trouble}`);
}

type Row = { readonly title: string; readonly state?: string; readonly text: string };
const TITLE = 8;

function summary(output: Output, now: Status): string {
  const { daemon, bus, http, sessions, asks, tasks, store, limits, plugins } = now;
  const hosts = sessions ? `  ${sessions} ${sessions === 1 ? 'session' : 'sessions'}` : '';
  const rows: (Row | false | undefined)[] = [
    { title: 'troupe', ...daemonText(daemon) },
    { title: 'bus', state: bus.state, text: `${bus.url ?? ''}${brokerText(bus)}` },
    !!bus.lastError && bus.state !== 'online' && { title: '', text: bus.lastError },
    http && { title: 'http', state: http.state, text: `${httpText(http)}${hosts}` },
    !!tasks?.unfinished && { title: 'tasks', text: `${tasks.unfinished} unfinished; see \`troupe tasks\`` },
    !!asks?.open && { title: 'asks', text: `${asks.open} open; see \`troupe inbox\`` },
    { title: 'store', state: store.state, text: store.message ?? '' },
    ...nearlyUsed(limits).map((text, index) => ({ title: index === 0 ? 'limits' : '', text })),
    ...plugins.map(({ name, state, error = '' }) => ({ title: 'plugin', state, text: `${name}  ${error}` })),
    { title: 'config', text: daemon.config ?? 'none, so the three reference servers are run' },
    !!daemon.configError && { title: '', text: `not applied: ${daemon.configError}` },
    { title: 'log', text: daemon.logFile },
  ];
  return rows
    .filter((row) => !!row)
    .map((row) => rowText(output, row))
    .join('\n');
}

const LIMITS = {
  descriptors: 'descriptors are used; raise ulimit -n, or close hosts',
  hosts: 'connections of hosts are open; close some, or raise ulimit -n',
  servers: 'processes of servers run; stop some, or raise ulimit -n',
} as const;

/** A sentence for each limit of which little is left. A daemon of an earlier version says nothing of them. */
function nearlyUsed(limits: Status['limits'] | undefined): string[] {
  return Object.entries(LIMITS).flatMap(([name, text]) => {
    const { used, most } = limits?.[name as keyof typeof LIMITS] ?? { used: null, most: null };
    return used !== null && most !== null && used >= NEARLY * most ? [`${used} of ${most} ${text}`] : [];
  });
}

const NEARLY = 0.8;

/** Folded between words. A path or an address is not broken: it is there to be copied. */
function rowText(output: Output, { title, state, text }: Row): string {
  const words = text.split(/ {2,}/).map(flat).filter(Boolean).join('  ');
  const [first = '', ...rest] = lines([state, words].filter(Boolean).join('  '), output.width - TITLE);
  const painted = state === undefined ? first : output.paint(styleOf(state), state) + first.slice(state.length);
  return [output.paint('dim', title.padEnd(TITLE)) + painted, ...rest.map((line) => ' '.repeat(TITLE) + line)].join(
    '\n',
  );
}

/** The pieces between two spaces, as many as have room in a line; a sentence that needs several goes on where it began. */
function lines(text: string, width: number): string[] {
  const all: string[] = [];
  for (const piece of text.split('  ')) {
    const before = all.pop();
    const longer = before === undefined ? piece : `${before}  ${piece}`;
    const isSentence = piece.includes(' ') && columnsOf(piece) > width;
    if (isSentence) all.push(...fold(longer, width));
    else if (before === undefined || columnsOf(longer) <= width) all.push(longer);
    else all.push(before, piece);
  }
  return all;
}

function daemonText({ instance, state, version, pid, uptimeMs, memoryBytes }: Status['daemon']) {
  const memory = memoryBytes === null ? '' : `  ${bytes(memoryBytes)}`;
  const facts = `version ${version}  pid ${pid}  up ${ago(uptimeMs)}${memory}`;
  return instance ? { text: `${instance}  ${state}  ${facts}` } : { state, text: facts };
}

function brokerText({ managed, pid, outbox, refused }: Status['bus']): string {
  const own = managed ? `  (our own nats-server${pid ? `, pid ${pid}` : ''})` : '';
  const aside = refused ? `  ${refused} ${refused === 1 ? 'event' : 'events'} put aside that could not be sent` : '';
  return `${own}${outbox ? `  ${outbox} messages wait in the outbox` : ''}${aside}`;
}

function httpText({ url, isOpen, needsToken, error }: NonNullable<Status['http']>): string {
  if (!url) return error ?? '';
  if (isOpen) return `${url}/mcp  open to other machines, with the token of troupe env`;
  return `${url}/mcp${needsToken ? '  with the token of troupe env' : ''}`;
}

const GOOD = new Set(['ready', 'running', 'online', 'ok', 'healthy', 'started', 'open', 'listening']);
const BAD = new Set(['failed', 'offline', 'closed', 'broken', 'full', 'locked']);
const styleOf = (state: string): Style => (GOOD.has(state) ? 'green' : BAD.has(state) ? 'red' : 'yellow');

function since(when: string | number | null | undefined): string {
  const time = when === null || when === undefined ? Number.NaN : new Date(when).getTime();
  return Number.isNaN(time) ? '-' : ago(Date.now() - time);
}

export async function control(cli: Cli, verb: 'start' | 'stop' | 'restart', server: string): Promise<number> {
  const { output, paths } = cli;
  const entry = await withControl(paths.socket, (socket) => socket.ask(verb, { server }));
  if (output.json) output.print(JSON.stringify(entry));
  else output.print(table(output, PS, [PS.map(({ cell }) => cell(entry))]));
  const isThere = entry.state === 'ready' || entry.state === 'asleep';
  if (verb === 'stop' ? entry.state === 'stopped' : isThere) return OK;
  const trouble = await troubleText(output, [entry], paths.logFile);
  output.say(trouble || `${server} is ${entry.state}; see \`troupe logs ${server}\``);
  return FAILED;
}
