// The verbs and options of tasks, as `program.ts` has them of everything else.

import type { Command } from 'commander';
import type { Cli } from './verb.ts';

type Verb = (words: string, description: string) => Command;
type Action = (work: (cli: Cli) => Promise<number>) => Promise<void>;

/** What a call may say of the task that it shall be. */
export const taskOptions = (call: Command): Command =>
  call
    .option('--task', 'make it a task: prints its id and returns; it goes on without you')
    .option('--ttl <time>', 'how long the task and its result may live, like 1h')
    .option('--key <key>', 'the same key is the same task, however often it is asked for');

export function taskVerbs(verb: Verb, run: Action): void {
  verb('tasks [prune]', 'calls that go on by themselves, newest last; prune removes what has ended')
    .option('-f, --follow', 'show them as they go on; with --json one task a line, at each change')
    .option('--all', 'every one, and not only the newest 1,000')
    .option('--older <time>', 'prune only what ended that long ago, like 1d')
    .action((action, options) => run(async (cli) => (await import('./tasks.ts')).tasks(cli, action, options)));
  verb('task <action> <id>', 'get, result, wait or cancel; of the id the first 4 characters may do')
    .option('--timeout <time>', 'of result and wait: stop waiting after, like 30s; the task goes on')
    .addHelpText(
      'after',
      '\nget     shows how it is' +
        '\nresult  waits for it, and prints and ends as the call would have' +
        '\nwait    waits for it, and says how it ended: exit code 0 completed,' +
        '\n        5 the tool returned an error, 1 failed or cancelled' +
        '\ncancel  ends it; exit code 1 if it had ended before' +
        '\n\nCtrl-C leaves the task running.',
    )
    .action((action, id, options) => run(async (cli) => (await import('./task.ts')).task(cli, action, id, options)));
}
