// The questions that want a yes or a no: whether an address is opened, and whether a call is made. An address is shown whole,
// with warnings; only a yes opens it, and only then the server hears that the person agreed.

import { type Address, readAddress } from '../../asks/address.ts';
import type { AskView } from '../../asks/ask.ts';
import { TroupeError } from '../../protocol/failures.ts';
import { NO_BROWSER, openBrowser } from '../terminal/programs.ts';
import { clean, folded, occasion, oneLine, quoted, stated, whose } from '../terminal/words.ts';
import type { Output } from '../verb.ts';
import { DECLINE, type Talk, type Talked } from './talk.ts';

export async function talkUrl(talk: Talk): Talked {
  const { dialog, view, send, again } = talk;
  dialog.say(introduction(dialog.output, view));
  if (view.stage === 'done') return untilDone(talk);
  const word = await dialog.choose('Open it in your browser? [y/N/d(ecline)] ', ['yes', 'no', 'decline'], 'no');
  if (word === 'decline') return send(DECLINE);
  if (word === 'no') {
    dialog.say('Nothing was opened or sent; the question stays open.');
    return undefined;
  }
  // The answer is sent before the browser is opened: a question that was answered elsewhere meanwhile must not open one.
  const outcome = await send({ action: 'accept' });
  if (view.url && !(await openBrowser(view.url))) dialog.complain(NO_BROWSER);
  return outcome === 'open' && (await again())?.stage === 'done' ? untilDone(talk) : 'consented';
}

function introduction(output: Output, view: AskView): string {
  const address = readAddress(view.url ?? '');
  if (!address) throw new TroupeError('invalid', `${oneLine(view.server)} asks for an address that no browser opens`);
  return [
    stated(output, view.server, ` asks to open an address${occasion(view)}:`),
    quoted(output, view.message),
    '',
    `  ${highlighted(output, address)}`,
    '',
    `  It leads to ${output.paint('bold', clean(address.host))}.`,
    ...address.warnings.flatMap((warning) =>
      folded(`Warning: ${warning}`, output.width - 2).map((line) => `  ${output.paint('yellow', line)}`),
    ),
    '',
  ].join('\n');
}

/** Highlights the host: it is the end of the part between the slashes, and a user name before it may look like one. */
function highlighted(output: Output, { href, host }: Address): string {
  const end = href.indexOf('/', href.indexOf('//') + 2);
  const start = end - host.length;
  return `${href.slice(0, start)}${output.paint('bold', href.slice(start, end))}${href.slice(end)}`;
}

/** The call waits until the person, or the server itself, says that it is done. */
async function untilDone({ dialog, view, send, command }: Talk): Talked {
  dialog.say(`The call waits until you are done there.`);
  try {
    const word = await dialog.choose('Is it done? [y/N] ', ['yes', 'no'], 'no');
    if (word === 'yes') return await send({ action: 'accept' }, 'done');
  } catch (error) {
    if (!(error instanceof TroupeError) || error.code !== 'answered') throw error;
    return 'gone';
  }
  dialog.say(`The call to ${oneLine(view.server)} still waits; say \`${command}\` again when it is done.`);
  return undefined;
}

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

/** The arguments of a call for people: a long text is cut, and its length told. */
function argumentsText(value: NonNullable<AskView['arguments']>): string {
  const short = (_: string, each: unknown): unknown =>
    typeof each === 'string' && each.length > LONGEST_TEXT
      ? `${each.slice(0, LONGEST_TEXT)}… (${each.length.toLocaleString('en')} characters in all)`
      : each;
  return JSON.stringify(value, short, 2);
}
