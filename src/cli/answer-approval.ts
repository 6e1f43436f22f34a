// The question whether a call may be made: what would be called and with what, then yes or no.

import type { AskView } from '../asks/ask.ts';
import type { Talk } from './answer-talk.ts';
import { oneLine, quoted, stated, whose } from './answer-words.ts';

const LONGEST_TEXT = 1_000;

export async function talkApproval({ dialog, view, send }: Talk): Promise<string> {
  const { output, say, choose } = dialog;
  const [who, wants] = whose(view) === 'you' ? ['You', 'want'] : [whose(view), 'wants'];
  say(stated(output, who, ` ${wants} to call ${oneLine(view.tool) || 'a tool'} of ${oneLine(view.server)} with`));
  say(quoted(output, view.arguments ? argumentsText(view.arguments) : 'more than can be shown here'));
  say('');
  const word = await choose('[a]pprove, [d]ecline: ', ['approve', 'decline']);
  return send({ action: word === 'approve' ? 'accept' : 'decline' });
}

/** For people: a text that nobody reads to its end is cut, and its length told. */
export function argumentsText(value: NonNullable<AskView['arguments']>): string {
  const short = (_: string, each: unknown): unknown =>
    typeof each === 'string' && each.length > LONGEST_TEXT
      ? `${each.slice(0, LONGEST_TEXT)}… (${each.length.toLocaleString('en')} characters in all)`
      : each;
  return JSON.stringify(value, short, 2);
}
