// The reader of frames, and the editors that change members of them, beside JSON.parse: no I/O, so all inputs are cheap.

import { withProgressToken, withTextAt } from '../../../src/protocol/edit.ts';
import { readFrame } from '../../../src/protocol/frame.ts';
import { elements, member, members, namesEachOnce } from '../../../src/protocol/json.ts';
import { splitLines } from '../../../src/protocol/lines.ts';
import { messages, variantOf } from '../arbitraries/messages.ts';
import { eachInTurn, stage, type Target } from '../target.ts';

/** Deeper than the reader goes, JSON.parse still does; brackets within texts are counted too, which does no harm here. */
const isShallow = (text: string): boolean => (text.match(/[[{]/g)?.length ?? 0) < 100;

export const frames: Target<string> = {
  name: 'frames',
  inputs: messages,
  vary: variantOf,
  batch: 200,
  open: async () => stage((inputs) => eachInTurn(inputs, (input) => look(Buffer.from(input, 'latin1'), input))),
};

function look(line: Buffer, input: string): void {
  const frame = readFrame(line);
  const isRefused = frame.kind === 'malformed' && frame.code === -32700;
  if (isShallow(input) && isRefused === isJson(line))
    throw new Error(`readFrame and JSON.parse differ: ${JSON.stringify(input)}`);
  const body = 'params' in frame ? frame.params : 'result' in frame ? frame.result : undefined;
  if (body) edit(body);
  splitLines({ maxBytes: 100, onLine: () => {}, onTooLong: () => {} }).push(line);
}

/** What is edited must stay JSON, and one line. */
function edit(body: Buffer): void {
  void [[...members(body)], [...elements(body)], member(body, 'name'), namesEachOnce(body)];
  for (const edited of [withProgressToken(body, 7), withTextAt(body, ['uri'], 'x:\n"')])
    if (edited && isJson(body) && !isJson(edited))
      throw new Error(`an edit broke ${JSON.stringify(body.toString('latin1'))}`);
}

function isJson(line: Buffer): boolean {
  try {
    JSON.parse(new TextDecoder('utf8', { fatal: true }).decode(line));
    return true;
  } catch {
    return false;
  }
}
