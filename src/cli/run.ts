// One verb of the command line: argv in, one exit code out, and never a stack trace.
// The process ends by itself, so that everything written to a pipe is read.

import { CommanderError } from 'commander';
import { realPathsOf } from '../config/paths.ts';
import { VERSION } from '../protocol/version.ts';
import { buildProgram, type Run } from './program.ts';
import { processOutput, reportError, usage } from './verb.ts';

export async function runVerb(words: readonly string[]): Promise<void> {
  const beforeDashes = words.includes('--') ? words.slice(0, words.indexOf('--')) : words;
  const json = beforeDashes.includes('--json');
  const run: Run = async (work, where) => {
    const paths = realPathsOf(process.env, where);
    process.exitCode = await work({ output: processOutput(json, process.env), env: process.env, paths });
  };

  // A reader that closes the pipe early, such as `| head`, is no error.
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

  process.on('uncaughtException', (error) => {
    // In the daemon another listener reports it.
    if (process.listenerCount('uncaughtException') === 1) process.exit(reportError(error, json));
  });

  try {
    await buildProgram(VERSION, run).parseAsync([...words], { from: 'user' });
  } catch (error) {
    process.exitCode = error instanceof CommanderError ? usageCode(error, words, json) : reportError(error, json);
  }
}

function usageCode(error: CommanderError, words: readonly string[], json: boolean): number {
  if (error.exitCode === 0) return 0;
  if (error.code === 'commander.help') return 2; // the help itself was the answer
  const message = error.message.replace(/^error: /, '').replace(/\s*\n\s*/g, ' ');
  const verb = words.find((word) => !word.startsWith('-'));
  const isKnown = verb !== undefined && error.code !== 'commander.unknownCommand';
  return reportError(usage(`${message}; see \`troupe ${isKnown ? `${verb} ` : ''}--help\``), json);
}
