// `start`, `stop`, `restart`: one server of the running daemon, and what came of it.

import { withControl } from './control.ts';
import { psTable } from './status.ts';
import { flat } from './table.ts';
import { type Cli, FAILED, OK } from './verb.ts';

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
