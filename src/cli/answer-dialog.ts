// A talk with somebody at a terminal: a line for each question, on stderr. It ends by Ctrl-C or Ctrl-D, or from outside
// when what it is about is over; then whatever waits for a line fails with the reason.

import { createInterface, type Interface } from 'node:readline';
import { TroupeError } from '../protocol/failures.ts';
import { clean } from './answer-words.ts';
import { type Output, usage } from './output.ts';

export type Dialog = {
  readonly output: Output;
  readonly say: (text: string) => void;
  /** Says what is wrong with what was typed. */
  readonly complain: (text: string) => void;
  /** The next line that is typed, as it was typed. */
  readonly ask: (prompt: string) => Promise<string>;
  /** One of these words, or its first letter; typed after the question was there, for a paste must not decide. */
  readonly choose: <Choice extends string>(
    prompt: string,
    choices: readonly Choice[],
    otherwise?: NoInfer<Choice>,
  ) => Promise<Choice>;
  /** The same, where one of the words may have more behind it, which comes along. */
  readonly command: <Choice extends string>(
    prompt: string,
    choices: readonly Choice[],
    takesMore: NoInfer<Choice>,
  ) => Promise<readonly [choice: Choice, more: string]>;
  /** Leaves the terminal to another program until that is done. */
  readonly lend: <Result>(use: () => Promise<Result>) => Promise<Result>;
  readonly end: (reason: Error) => void;
  /** Rejects when it ends before its time. */
  readonly ended: Promise<never>;
  readonly isInterrupted: () => boolean;
  readonly close: () => void;
};

export const hasPerson = (output: Output): boolean => output.isWatched && Boolean(process.stdin.isTTY);

export function openDialog(output: Output): Dialog {
  if (!hasPerson(output)) throw usage('nobody can be asked without a terminal');
  const typed: string[] = [];
  const { promise: ended, reject: fail } = withResolvers();
  let lines: Interface | undefined = open();
  let wake: (() => void) | undefined;
  let reason: Error | undefined;
  let isInterrupted = false;
  let isAsking = false;

  function open(): Interface {
    // Without a history: what was typed for one question is not to be found at the next.
    const opened = createInterface({ input: process.stdin, output: process.stderr, historySize: 0 });
    opened.on('line', (line) => {
      typed.push(line);
      wake?.();
    });
    opened.on('SIGINT', interrupt);
    opened.on('close', () => opened === lines && interrupt());
    return opened;
  }
  function interrupt(): void {
    if (!lines) return; // the terminal is lent, and Ctrl-C was for the other program
    isInterrupted = reason === undefined;
    end(new TroupeError('cancelled', 'interrupted'));
  }
  function end(why: Error): void {
    reason ??= why;
    fail(reason);
    wake?.();
  }
  async function ask(prompt: string): Promise<string> {
    if (typed.length === 0 && !reason) {
      lines?.setPrompt(prompt);
      lines?.prompt();
      isAsking = true;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      isAsking = false;
    } else if (!reason) output.draw(`${prompt}${typed[0]}\n`);
    if (reason) throw reason;
    return typed.shift() ?? '';
  }
  async function command<Choice extends string>(prompt: string, choices: readonly Choice[], takesMore: Choice) {
    for (;;) {
      typed.length = 0;
      const [word = '', ...more] = (await ask(prompt)).trim().split(/\s+/);
      const chosen = meant(choices, word.toLowerCase());
      if (chosen && (more.length === 0 || chosen === takesMore)) return [chosen, more.join(' ')] as const;
      refuse(choices);
    }
  }
  const refuse = (choices: readonly string[]): void =>
    output.say(`Please type ${choices.map((choice) => choice.slice(0, 1)).join(', ')}, or the whole word.`);
  process.on('SIGINT', interrupt);

  return {
    output,
    ask,
    ended,
    command,
    end(why) {
      if (isAsking && !reason) output.draw('\n'); // what is said next is no part of what was being typed
      end(why);
    },
    say: (text) => output.say(text),
    complain: (text) => output.say(output.paint('yellow', clean(text))),
    isInterrupted: () => isInterrupted,
    async choose(prompt, choices, otherwise) {
      for (;;) {
        typed.length = 0;
        const word = (await ask(prompt)).trim().toLowerCase();
        const chosen = meant(choices, word) ?? (word === '' ? otherwise : undefined);
        if (chosen) return chosen;
        refuse(choices);
      }
    },
    async lend(use) {
      const kept = lines;
      lines = undefined;
      kept?.close();
      try {
        return await use();
      } finally {
        lines = open();
      }
    },
    close() {
      const kept = lines;
      lines = undefined;
      process.off('SIGINT', interrupt);
      kept?.close();
    },
  };
}

const meant = <Choice extends string>(choices: readonly Choice[], word: string): Choice | undefined =>
  choices.find((choice) => choice === word || (word.length === 1 && choice.startsWith(word)));

function withResolvers(): { promise: Promise<never>; reject: (error: Error) => void } {
  let reject = (_: Error): void => {};
  const promise = new Promise<never>((_, no) => {
    reject = no;
  });
  promise.catch(() => {}); // whoever races against it hears of it; nobody needs to
  return { promise, reject };
}
