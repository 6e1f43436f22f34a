// `status`, `ps`, `env`: the daemon, its bus and its servers as they are now. `start`, `stop`, `restart`: one server, and its
// state afterwards.

import { withControl } from '../control.ts';
import { ago, bytes, type Cell, cut, flat, table } from '../terminal/table.ts';
import { type Cli, FAILED, OK, type Output, type Style } from '../verb.ts';
import type { ServerStatus, Status } from './running.ts';

export async function status({ output, paths }: Cli): Promise<number> {
  const raw = await withControl(paths.socket, (control) => control.request('status', {}).result);
  if (output.json) {
    output.print(raw);
    return OK;
  }
  const now = JSON.parse(raw.toString()) as Status;
  output.print(summary(output, now));
  if (now.servers.length > 0) output.print(`\n${serverTable(output, now.servers)}`);
  else output.print('\nno servers yet: add one with `troupe add <name> -- <command>`, or `troupe import`');
  for (const { name, state, lastError, trouble } of now.servers) {
    const wrong = trouble ?? (state !== 'ready' && lastError);
    if (wrong) output.print(cut(`${output.paint('yellow', name)}: ${flat(wrong)}`, 400));
  }
  return OK;
}

/** One line a server, with its last error at the end. */
export async function ps({ output, paths }: Cli): Promise<number> {
  const { servers } = await withControl(paths.socket, (control) => control.ask('status'));
  if (output.json) output.print(JSON.stringify(servers));
  else if (servers.length > 0) output.print(psTable(output, servers));
  else output.say('no servers are configured; add one with `troupe add <name> -- <command>`');
  return OK;
}

export async function env({ output, paths }: Cli): Promise<number> {
  const raw = await withControl(paths.socket, (control) => control.request('env', {}).result);
  if (output.json) output.print(raw);
  else
    for (const [name, value] of Object.entries(JSON.parse(raw.toString()) as Record<string, string>))
      output.print(`${name}=${quoted(value)}\nexport ${name}`); // two lines, so that the assignment can be used without the export
  return OK;
}

/** A server's entry after `start`, `stop` or `restart`. */
const psTable = (output: Output, servers: readonly ServerStatus[]): string =>
  table(
    output,
    [
      { title: 'SERVER', elastic: true },
      { title: 'STATE' },
      { title: 'SINCE', right: true },
      { title: 'PID', right: true },
      { title: 'RESTARTS', right: true },
      { title: 'IN FLIGHT', right: true },
      { title: 'LAST ERROR', elastic: true },
    ],
    servers.map((each) => [
      each.name,
      stateCell(each.state),
      since(each.since),
      String(each.pid ?? '-'),
      String(each.restarts ?? 0),
      String(each.inFlight ?? 0),
      each.trouble ?? each.lastError ?? '',
    ]),
  );

function serverTable(output: Output, servers: readonly ServerStatus[]): string {
  const titles = ['SINCE', 'PID', 'RESTARTS', 'IN FLIGHT', 'TOOLS', 'CALLS', 'ERRORS'];
  return table(
    output,
    [{ title: 'SERVER', elastic: true }, { title: 'STATE' }, ...titles.map((title) => ({ title, right: true }))],
    servers.map((each) => [
      each.name,
      stateCell(each.state),
      since(each.since),
      String(each.pid ?? '-'),
      ...[each.restarts, each.inFlight, each.tools, each.calls, each.errors].map((count) => String(count ?? 0)),
    ]),
  );
}

type Row = readonly [title: string, text: string];

function summary(output: Output, now: Status): string {
  const { daemon, bus, http, sessions, asks, tasks, store, plugins } = now;
  const state = (each: { readonly state: string }): string => paintState(output, each.state);
  const hosts = sessions ? `  ${sessions} ${sessions === 1 ? 'session' : 'sessions'}` : '';
  const rows: (Row | false | undefined)[] = [
    ['troupe', daemonText(daemon, state(daemon))],
    ['bus', `${state(bus)}  ${bus.url ?? ''}${brokerText(bus)}`],
    !!bus.lastError && bus.state !== 'online' && ['', flat(bus.lastError)],
    http && ['http', `${state(http)}  ${httpText(http)}${hosts}`],
    !!tasks?.unfinished && ['tasks', `${tasks.unfinished} unfinished; see \`troupe tasks\``],
    !!asks?.open && ['asks', `${asks.open} open; see \`troupe inbox\``],
    ['store', `${state(store)}  ${flat(store.message ?? '')}`],
    ...plugins.map((each): Row => ['plugin', `${each.name} ${state(each)}  ${flat(each.error ?? '')}`]),
    ['config', daemon.config ?? 'none, so the three reference servers are run'],
    !!daemon.configError && ['', `not applied: ${flat(daemon.configError)}`],
    ['log', daemon.logFile],
  ];
  return rows
    .filter((row) => !!row)
    .map(([title, text]) => `${output.paint('dim', title.padEnd(7))} ${text.trimEnd()}`)
    .join('\n');
}

function daemonText({ instance, version, pid, uptimeMs, memoryBytes }: Status['daemon'], state: string): string {
  const name = instance ? `${instance}  ` : '';
  return `${name}${state}  version ${version}  pid ${pid}  up ${ago(uptimeMs)}  ${bytes(memoryBytes)}`;
}

function brokerText({ managed, pid, outbox }: Status['bus']): string {
  const own = managed ? `  (our own nats-server${pid ? `, pid ${pid}` : ''})` : '';
  return `${own}${outbox ? `  ${outbox} messages wait in the outbox` : ''}`;
}

const httpText = ({ url, isOpen, error }: NonNullable<Status['http']>): string =>
  url ? `${url}/mcp${isOpen ? '  open to other machines, with the token of troupe env' : ''}` : flat(error ?? '');

const GOOD = new Set(['ready', 'running', 'online', 'ok', 'healthy', 'started', 'open', 'listening']);
const BAD = new Set(['failed', 'offline', 'closed', 'broken', 'full', 'locked']);
const styleOf = (state: string): Style => (GOOD.has(state) ? 'green' : BAD.has(state) ? 'red' : 'yellow');
const paintState = (output: Output, state: string): string => output.paint(styleOf(state), state);
const stateCell = (state: string): Cell => ({ text: state, style: styleOf(state) });

function since(when: string | number | null | undefined): string {
  const time = when === null || when === undefined ? Number.NaN : new Date(when).getTime();
  return Number.isNaN(time) ? '-' : ago(Date.now() - time);
}

/** Bare where a shell needs no quotes, so that `env $(troupe env) nats …` works too. */
const quoted = (value: string): string =>
  /^[\w@%+=:,./-]*$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;

export async function control(cli: Cli, verb: 'start' | 'stop' | 'restart', server: string): Promise<number> {
  const { output, paths } = cli;
  const entry = await withControl(paths.socket, (socket) => socket.ask(verb, { server }));
  if (output.json) output.print(JSON.stringify(entry));
  else output.print(psTable(output, [entry]));
  const isThere = entry.state === 'ready' || entry.state === 'asleep';
  if (verb === 'stop' ? entry.state === 'stopped' : isThere) return OK;
  output.say(
    `${server} is ${entry.state}${entry.lastError ? `: ${flat(entry.lastError)}` : ''}; see \`troupe logs ${server}\``,
  );
  return FAILED;
}
