// Every verb of the command line with its arguments. The code of a verb is loaded only when the verb is used, so that each
// starts fast.

import { type Argument, Command } from 'commander';
import { holdYoung } from '../world/young.ts';
import type { Kind } from './calls/definition.ts';
import type { Cli } from './verb.ts';

type Work = (cli: Cli) => Promise<number>;
/** Runs a verb's work, for the configuration and the daemon that the user named. */
export type Run = (work: Work, where: { readonly config?: string; readonly instance?: string }) => Promise<void>;

/** The fewest columns in which a description is still folded between words. */
const LEAST_HELP = 20;

export function buildProgram(version: string, runHere: Run): Command {
  const program = new Command('troupe')
    .description('Runs many MCP servers as one supervised fleet of actors and puts them on a NATS bus.')
    .version(version)
    .exitOverride()
    .configureHelp({ subcommandTerm: termOf, minWidthToWrap: LEAST_HELP })
    .configureOutput({ outputError: () => {} })
    .showSuggestionAfterError()
    .addHelpText(
      'after',
      '\nExit codes: 0 ok, 1 error, 2 usage, 3 not authorized, 4 unreachable,' +
        '\n5 the tool returned an error.' +
        '\nTROUPE_STATE sets the state directory, TROUPE_CONFIG the configuration,' +
        '\nTROUPE_INSTANCE or --instance which of several daemons there is meant.',
    );
  let where: Parameters<Run>[1] = {};
  program.hook('preAction', (_, chosen) => {
    where = chosen.opts();
  });
  const run: Action = (work) => runHere(work, where);
  const verb = (words: string, description: string): Command =>
    program
      .command(words)
      .description(description)
      .option('--instance <name>', 'which of several daemons on the state directory')
      .option('--json', 'print JSON for programs');
  daemonVerbs(program, verb, run);
  catalogVerbs(program, verb, run);
  callVerbs(program, verb, run);
  askVerbs(program, verb, run);
  serverVerbs(program, verb, run);
  hostVerbs(program, verb, run);
  return program;
}

type Action = (work: Work) => Promise<void>;
type Verb = (words: string, description: string) => Command;

function daemonVerbs(program: Command, verb: Verb, run: Action): void {
  program.commandsGroup('The daemon:');
  verb('up', 'start; Ctrl-C drains and stops')
    .option('--config <file>', 'the configuration to run')
    .option('--http <address>', 'where hosts come in: HOST:PORT, a port (0 picks one), or off')
    .option('--detach', 'run in the background; returns when the daemon is ready')
    .action((options) => {
      holdYoung(); // before most of the daemon is loaded
      return run(async (cli) => (await import('./daemon/up.ts')).up(cli, options));
    });
  verb('down', 'drain and stop')
    .option('--all', 'every daemon on the state directory')
    .action((options) => run(async (cli) => (await import('./daemon/down.ts')).down(cli, options)));
  verb('status', 'the daemon, its bus and its servers').action(() =>
    run(async (cli) => (await import('./daemon/status.ts')).status(cli)),
  );
  verb('ps', 'one line a server').action(() => run(async (cli) => (await import('./daemon/status.ts')).ps(cli)));
  verb('env', 'NATS_URL and TROUPE_HTTP, with what it takes to come in').action(() =>
    run(async (cli) => (await import('./daemon/status.ts')).env(cli)),
  );
  verb('logs [server]', "the daemon's log, the servers' stderr and log messages")
    .option('-f, --follow', 'wait for more')
    .option('-n, --lines <count>', 'the last so many lines', '50')
    .option('--level <level>', 'at least this level: debug, info, warn, error')
    .action((server, options) => run(async (cli) => (await import('./daemon/logs.ts')).logs(cli, server, options)));
  verb('doctor', 'check this machine and the configuration, and say how to mend')
    .option('--config <file>', 'the configuration to check')
    .option('--no-launch', 'do not launch the servers')
    .action((options) => run(async (cli) => (await import('./doctor/doctor.ts')).doctor(cli, options)));
}

function catalogVerbs(program: Command, verb: Verb, run: Action): void {
  program.commandsGroup('What the servers offer:');
  const kinds: [Kind, string][] = [
    ['tools', 'the tools; with a name, all that is said of that one'],
    ['resources', 'the resources, or one of them'],
    ['templates', 'the templates of resources, or one of them'],
    ['prompts', 'the prompts, or one of them'],
  ];
  for (const [kind, description] of kinds)
    verb(`${kind} [server] [name]`, description).action((server, name) =>
      run(async (cli) => (await import('./calls/catalog.ts')).list(cli, kind, server, name)),
    );
}

function callVerbs(program: Command, verb: Verb, run: Action): void {
  program.commandsGroup('Calls:');
  const timed: Verb = (words, description) =>
    verb(words, description).option(
      '--timeout <time>',
      'give up and cancel after, like 30s; progress extends it, an open question does not',
    );
  taskOptions(timed('call <server> <tool> [pairs...]', 'call a tool: key=value, or key:=json'))
    .option('--args <json>', 'the arguments as JSON; @file reads a file, - reads stdin')
    .action((server, tool, pairs, options) =>
      run(async (cli) => (await import('./calls/call.ts')).call(cli, { server, tool, pairs, options })),
    );
  timed('read <server> <uri>', 'read a resource').action((server, uri, options) =>
    run(async (cli) => (await import('./calls/call.ts')).read(cli, server, uri, options)),
  );
  timed('prompt <server> <name> [pairs...]', 'get a prompt: key=value').action((server, name, pairs, options) =>
    run(async (cli) => (await import('./calls/call.ts')).prompt(cli, { server, name, pairs, options })),
  );
  timed(
    'complete <server> <ref> <pairs...>',
    'complete name=beginning of a prompt or a template; more pairs are what is known already',
  ).action((server, ref, pairs, options) =>
    run(async (cli) => (await import('./calls/call.ts')).complete(cli, { server, ref, pairs, options })),
  );
  taskVerbs(verb, run);
}

/** The options of a call that becomes a task. */
const taskOptions = (call: Command): Command =>
  call
    .option('--task', 'make it a task: prints its id and returns; it goes on without you')
    .option('--ttl <time>', 'how long the task and its result may live, like 1h')
    .option('--key <key>', 'the same key is the same task, however often it is asked for');

function taskVerbs(verb: Verb, run: Action): void {
  verb('tasks [prune]', 'calls that go on by themselves, newest last; prune removes what has ended')
    .option('-f, --follow', 'show them as they go on; with --json one task a line, at each change')
    .option('--all', 'every one, and not only the newest 1,000')
    .option('--older <time>', 'prune only what ended that long ago, like 1d')
    .action((action, options) => run(async (cli) => (await import('./tasks/tasks.ts')).tasks(cli, action, options)));
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
    .action((action, id, options) =>
      run(async (cli) => (await import('./tasks/task.ts')).task(cli, action, id, options)),
    );
}

function askVerbs(program: Command, verb: Verb, run: Action): void {
  program.commandsGroup('Questions:');
  verb('inbox', 'what servers ask, and calls that wait for approval')
    .option('-f, --follow', 'wait for more; with --json one array a line, at each change')
    .action((options) => run(async (cli) => (await import('./answer/inbox.ts')).inbox(cli, options)));
  verb('answer <id>', 'answer a question: a form at a terminal, or one of the options')
    .option('--accept [json]', 'accept, with this answer if it takes one; @file reads a file, - reads stdin')
    .option('--decline', 'say no')
    .option('--cancel', 'say that nothing will come of it')
    .action((id, options) => run(async (cli) => (await import('./answer/answer.ts')).answer(cli, id, options)));
  verb('roots [add|rm] [directory]', 'the directories that servers may know of')
    .option('--name <name>', 'what an added directory is called')
    .action((action, directory, options) =>
      run(async (cli) => (await import('./setup/roots.ts')).roots(cli, action, directory, options)),
    );
}

function serverVerbs(program: Command, verb: Verb, run: Action): void {
  program.commandsGroup('The servers:');
  for (const name of ['start', 'stop', 'restart'] as const)
    verb(`${name} <server>`, `${name} a server`).action((server) =>
      run(async (cli) => (await import('./daemon/status.ts')).control(cli, name, server)),
    );
  const configured: Verb = (words, description) =>
    verb(words, description).option('--config <file>', 'the configuration to change');
  configured('add <name> [command...]', 'add a server: troupe add <name> -- <command> [args…], or --url <url>')
    .option('--env <NAME=value>', 'a variable for the server (repeatable)', collected, [])
    .option('--cwd <directory>', 'where the server runs')
    .option('--url <url>', 'the address of a server that runs elsewhere, instead of a command')
    .option('--header <NAME=value>', 'a header for the server behind the url (repeatable)', collected, [])
    .option('--type <transport>', 'http, sse or ws, where the url does not tell')
    .action((name, words, options) =>
      run(async (cli) => (await import('./setup/servers.ts')).add(cli, name, words, options)),
    );
  configured('rm <name>', 'remove a server').action((name, options) =>
    run(async (cli) => (await import('./setup/servers.ts')).remove(cli, name, options)),
  );
  configured('import <source>', 'add the servers of claude, cursor, vscode, or a file')
    .option('--yes', 'do not ask')
    .option('--dry-run', 'only show what would be added')
    .action((source, options) =>
      run(async (cli) => (await import('./setup/import.ts')).importServers(cli, source, options)),
    );
}

function hostVerbs(program: Command, verb: Verb, run: Action): void {
  program.commandsGroup('Hosts and logins:');
  // `troupe connect` itself is dispatched by main.ts without this program. The entry here lists the verb in `--help`, and
  // serves `troupe --json connect` and the like, where the verb is not the first word.
  program
    .command('connect [scope]')
    .description('MCP on stdin and stdout, for hosts that start a command')
    .allowUnknownOption()
    .action(async () => {
      const { connect } = await import('./connect/connect.ts');
      connect(process.argv.slice(process.argv.indexOf('connect') + 1), process.env);
    });
  verb('install <host>', 'put troupe into a host: claude-code, claude-desktop, cursor, vscode, codex')
    .option('--print', 'only show what would be written')
    .option('--yes', 'do not ask')
    .option('--url', 'by address instead of by command, for hosts that can')
    .option('--server <name>', 'only this server, or @profile')
    .option('--name <entry>', 'what the entry is called there')
    .action((host, options) => run(async (cli) => (await import('./setup/install.ts')).install(cli, host, options)));
  verb('login <server>', 'log in to a server that wants to know who you are')
    .option('--no-browser', 'only print the address to open')
    .action((server, options) => run(async (cli) => (await import('./setup/login.ts')).login(cli, server, options)));
  verb('logout <server>', 'forget what a login has brought').action((server) =>
    run(async (cli) => (await import('./setup/login.ts')).logout(cli, server)),
  );
}

const collected = (each: string, all: string[]): string[] => [...all, each];

/** A verb in the list of `--help`: without `[options]`, which every verb has. */
const termOf = (command: Command): string => [command.name(), ...command.registeredArguments.map(wordOf)].join(' ');

function wordOf(argument: Argument): string {
  const word = argument.name() + (argument.variadic ? '…' : '');
  return argument.required ? `<${word}>` : `[${word}]`;
}
