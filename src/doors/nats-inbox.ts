// The inbox as one message: every open question is in it while that is possible at all. What does not fit loses its details
// first, the largest before the small ones, and says so; only then is there a next page.

import type { AskView } from '../asks/ask.ts';
import { TroupeError } from '../protocol/failures.ts';

/** `next` is where to go on, when there is more. */
export type InboxPage = { readonly page: Buffer; readonly next?: string };

const DETAILS = ['schema', 'arguments', 'request', 'result', 'url'] as const;
const SHORT_CHARACTERS = 200;

export function inboxPage(asks: readonly AskView[], cursor: string | undefined, maxBytes: number): InboxPage {
  const rest = [...asks].sort(byAge).filter((ask) => cursor === undefined || isAfter(ask, cursor));
  const entries = rest.map((ask) => ({ ask, bytes: Buffer.from(JSON.stringify(ask)) }));
  let size = entries.reduce((sum, { bytes }) => sum + bytes.length + 1, 1);
  for (const entry of [...entries].sort((a, b) => b.bytes.length - a.bytes.length)) {
    if (size <= maxBytes) break;
    const short = Buffer.from(JSON.stringify(shortened(entry.ask)));
    size -= entry.bytes.length - short.length;
    entry.bytes = short;
  }
  const count = fitting(entries, maxBytes);
  const page = Buffer.concat([
    OPEN,
    ...entries.slice(0, count).flatMap(({ bytes }, i) => (i ? [COMMA, bytes] : [bytes])),
    CLOSE,
  ]);
  const last = entries[count - 1];
  return count < entries.length && last ? { page, next: placeOf(last.ask) } : { page };
}

const [OPEN, COMMA, CLOSE] = ['[', ',', ']'].map((text) => Buffer.from(text)) as [Buffer, Buffer, Buffer];

/** At least one: an empty page would never end. */
function fitting(entries: readonly { bytes: Buffer }[], maxBytes: number): number {
  let room = maxBytes - 1;
  const over = entries.findIndex(({ bytes }) => {
    room -= bytes.length + 1;
    return room < 0;
  });
  return over < 0 ? entries.length : Math.max(1, over);
}

/** `cut` names what is missing, so that nobody takes a form for one without fields. */
function shortened(ask: AskView): object {
  const [message, tool] = [ask.message.slice(0, SHORT_CHARACTERS), ask.tool.slice(0, SHORT_CHARACTERS)];
  const gone = DETAILS.filter((detail) => ask[detail] !== undefined);
  const cut = [...gone, ...(message === ask.message ? [] : ['message']), ...(tool === ask.tool ? [] : ['tool'])];
  const rest = Object.fromEntries(Object.entries(ask).filter(([key]) => !gone.includes(key as never)));
  return { ...rest, message, tool, cut };
}

const byAge = (a: AskView, b: AskView): number => a.openedAt - b.openedAt || (a.id < b.id ? -1 : 1);

/** A place between questions, so that it holds when the question it was made of is answered meanwhile. */
const placeOf = ({ openedAt, id }: AskView): string => `${openedAt}.${id}`;

function isAfter(ask: AskView, cursor: string): boolean {
  const [, openedAt, id] = /^(\d{1,16})\.([\w-]{1,64})$/.exec(cursor) ?? [];
  if (openedAt === undefined || id === undefined)
    throw new TroupeError('invalid', 'cursor must be a Troupe-Next of an earlier page; leave it out to begin again');
  return ask.openedAt > Number(openedAt) || (ask.openedAt === Number(openedAt) && ask.id > id);
}
