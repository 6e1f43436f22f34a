// A server wants somebody to visit an address. It is shown whole, with what is odd about it; only a yes opens it, and only
// then the server hears that somebody agreed.

import { type Address, readAddress } from '../asks/address.ts';
import type { AskView } from '../asks/ask.ts';
import { TroupeError } from '../protocol/failures.ts';
import { DECLINE, type Talk, type Talked } from './answer-talk.ts';
import { clean, folded, occasion, oneLine, quoted, stated } from './answer-words.ts';
import { NO_BROWSER, openBrowser } from './browser.ts';
import type { Output } from './output.ts';

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
  // First the word, then the browser: what somebody else has answered meanwhile must not be opened.
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

/** The host is the end of what stands between the slashes; a name that looks like one may stand before it. */
function highlighted(output: Output, { href, host }: Address): string {
  const end = href.indexOf('/', href.indexOf('//') + 2);
  const start = end - host.length;
  return `${href.slice(0, start)}${output.paint('bold', href.slice(start, end))}${href.slice(end)}`;
}

/** The call waits until somebody says so; the server may do that itself. */
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
