// A talk with the person at the terminal: a line for each question, on stderr. It ends by Ctrl-C or Ctrl-D, or from outside
// when its subject is over; a question that still waits for its line then fails with the reason.

import { createInterface, type Interface } from 'node:readline';
import { createInterface as createQuestion } from 'node:readline/promises';
import { TroupeError } from '../../protocol/failures.ts';
import { type Cli, type Output, usage } from '../verb.ts';
import { clean } from './words.ts';

export type Dialog = {
  readonly output: Output;
  readonly say: (text: string) => void;
  /** Says what is wrong with what was typed. */
  readonly complain: (text: string) => void;
  /** The next line that is typed, as it was typed. */
  readonly ask: (prompt: string) => Promise<string>;
  /** One of these words, or its first letter. Lines typed before the question was shown do not count: a paste must not decide. */
  readonly choose: <Choice extends string>(
    prompt: string,
    choices: readonly Choice[],
    otherwise?: NoInfer<Choice>,
  ) => Promise<Choice>;
  /** The same, where one of the words may be followed by more text, which is returned too. */
  readonly command: <Choice extends string>(
    prompt: string,
    choices: readonly Choice[],
    takesMore: NoInfer<Choice>,
  ) => Promise<readonly [choice: Choice, more: string]>;
  /** Leaves the terminal to another program until that has ended. */
  readonly lend: <Result>(use: () => Promise<Result>) => Promise<Result>;
  readonly end: (reason: Error) => void;
  /** Rejects when the talk ends before it is closed. */
  readonly ended: Promise<never>;
  readonly isInterrupted: () => boolean;
  readonly close: () => void;
};

export const hasPerson = (output: Output): boolean => output.isWatched && Boolean(process.stdin.isTTY);

export function openDialog(output: Output): Dialog {
  if (!hasPerson(output)) throw usage('nobody can be asked without a terminal');
  const lines = openLines(output);
  const refuse = (choices: readonly string[]): void =>
    output.say(`Please type ${choices.map((choice) => choice.slice(0, 1)).join(', ')}, or the whole word.`);
  return {
    output,
    ask: lines.ask,
    end: lines.end,
    ended: lines.ended,
    lend: lines.lend,
    close: lines.close,
    isInterrupted: lines.isInterrupted,
    say: (text) => output.say(text),
    complain: (text) => output.say(output.paint('yellow', clean(text))),
    async choose(prompt, choices, otherwise) {
      for (;;) {
        lines.forget();
        const word = (await lines.ask(prompt)).trim().toLowerCase();
        const chosen = meant(choices, word) ?? (word === '' ? otherwise : undefined);
        if (chosen) return chosen;
        refuse(choices);
      }
    },
    async command(prompt, choices, takesMore) {
      for (;;) {
        lines.forget();
        const [word = '', ...more] = (await lines.ask(prompt)).trim().split(/\s+/);
        const chosen = meant(choices, word.toLowerCase());
        if (chosen && (more.length === 0 || chosen === takesMore)) return [chosen, more.join(' ')] as const;
        refuse(choices);
      }
    },
  };
}

/** The lines that are typed, one for each prompt, until the talk ends. */
function openLines(output: Output) {
  const typed: string[] = [];
  const { promise: ended, reject: fail } = withResolvers();
  let reader: Interface | undefined = open();
  let wake: (() => void) | undefined;
  let reason: Error | undefined;
  let isInterrupted = false;
  let isAsking = false;

  function open(): Interface {
    // Without a history: an answer to one question must not appear at the next.
    const opened = createInterface({ input: process.stdin, output: process.stderr, historySize: 0 });
    opened.on('line', (line) => {
      typed.push(line);
      wake?.();
    });
    opened.on('SIGINT', interrupt);
    opened.on('close', () => opened === reader && interrupt());
    return opened;
  }
  function shut(): void {
    const opened = reader;
    reader = undefined;
    opened?.close();
  }
  function interrupt(): void {
    if (!reader) return; // the terminal is lent, and Ctrl-C was for the other program
    isInterrupted = reason === undefined;
    stop(new TroupeError('cancelled', 'interrupted'));
  }
  function stop(why: Error): void {
    reason ??= why;
    fail(reason);
    wake?.();
  }
  async function ask(prompt: string): Promise<string> {
    if (typed.length === 0 && !reason) {
      reader?.setPrompt(output.rendered(prompt));
      reader?.prompt();
      isAsking = true;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      isAsking = false;
    } else if (!reason) output.draw(`${prompt}${typed[0]}\n`);
    if (reason) throw reason;
    return typed.shift() ?? '';
  }
  async function lend<Result>(use: () => Promise<Result>): Promise<Result> {
    shut();
    try {
      return await use();
    } finally {
      reader = open();
    }
  }
  function end(why: Error): void {
    if (isAsking && !reason) output.draw('\n'); // the next words begin on a line of their own
    stop(why);
  }
  function close(): void {
    process.off('SIGINT', interrupt);
    shut();
  }
  const forget = (): void => void typed.splice(0);
  process.on('SIGINT', interrupt);
  return { ask, forget, end, ended, lend, close, isInterrupted: () => isInterrupted };
}

const meant = <Choice extends string>(choices: readonly Choice[], word: string): Choice | undefined =>
  choices.find((choice) => choice === word || (word.length === 1 && choice.startsWith(word)));

function withResolvers(): { promise: Promise<never>; reject: (error: Error) => void } {
  let reject = (_: Error): void => {};
  const promise = new Promise<never>((_, no) => {
    reject = no;
  });
  promise.catch(() => {}); // those that race against it hear of it; without any, it is no unhandled rejection
  return { promise, reject };
}

/** Yes or no before something is changed. Without a terminal it fails with `otherwise`, which names the option to say yes. */
export async function agrees({ output }: Cli, question: string, otherwise: string): Promise<boolean> {
  if (!output.isWatched || !process.stdin.isTTY) throw usage(otherwise);
  const lines = createQuestion({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await lines.question(output.rendered(`${question} [y/N] `))).trim());
  } finally {
    lines.close();
  }
}
