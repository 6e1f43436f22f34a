// `connect`: an MCP server for hosts that only spawn commands. One is started for every host, so that this file imports
// little: no parser of options, no log, no schema.

import { realPathsOf } from '../../config/paths.ts';
import { FAILURES, sentence, TroupeError } from '../../protocol/failures.ts';
import { printable } from '../../telemetry/printable.ts';
import { runShim } from './shim.ts';

const HELP = `Usage: troupe connect [options] [server or @profile]

An MCP server on stdin and stdout that is all your servers, or one of them, or a profile.
Starts troupe if it does not run, and stays when troupe is restarted.

Options:
  --config <file>    the configuration to run, if troupe must be started
  --instance <name>  another daemon on the same state directory
  -h, --help         display help for command
`;

/** Ends the process, or leaves it to the shim to do so. */
export function connect(words: readonly string[], env: NodeJS.ProcessEnv): void {
  process.on('uncaughtException', (error) => process.exit(report(error)));
  try {
    const { scope, isHelp, options } = wordsOf(words);
    if (isHelp) return void process.stdout.write(HELP);
    const upWords = Object.entries(options).flatMap(([option, value]) => [`--${option}`, value]);
    if (process.stdin.isTTY)
      process.stderr.write('troupe: MCP is spoken here; hosts start this, see `troupe install`\n');
    runShim({ paths: realPathsOf(env, options), scope, upWords, env });
  } catch (error) {
    process.exitCode = report(error);
  }
}

function report(error: unknown): number {
  process.stderr.write(`troupe: ${printable(sentence(error))}\n`);
  return FAILURES[error instanceof TroupeError ? error.code : 'internal'].exit;
}

type Words = { scope: string; isHelp: boolean; readonly options: { config?: string; instance?: string } };

function wordsOf(words: readonly string[]): Words {
  const found: Words = { scope: '', isHelp: false, options: {} };
  const rest = [...words];
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    const [, option, given] = /^--(config|instance)(?:=(.*))?$/.exec(word) ?? [];
    if (option) found.options[option as 'config'] = needed(option, given ?? rest.shift());
    else if (word === '-h' || word === '--help') found.isHelp = true;
    else if (word.startsWith('-')) throw usage(`connect has no option ${word}`);
    else if (found.scope !== '') throw usage(`connect takes one server or profile, not also ${word}`);
    else found.scope = word;
  }
  return found;
}

function needed(option: string, value: string | undefined): string {
  if (!value) throw usage(`--${option} wants a value`);
  return value;
}

const usage = (why: string): TroupeError => new TroupeError('invalid', `${why}; see \`troupe connect --help\``);
