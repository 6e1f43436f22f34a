// A batch of JSON-RPC: its messages go on one by one, its answers go back together. Only MCP 2025-03-26 has them.

import { errorFrame } from '../protocol/compose.ts';
import type { Frame, Malformed } from '../protocol/frame.ts';
import type { Line } from '../sessions/host.ts';

/** For notifications and responses, which get no answer. */
export const NO_LINE: Line = { tell: () => {}, answer: () => {} };

/** Whether the host waits for an answer to this message. */
export const isOwed = ({ kind }: Frame): boolean => kind === 'request' || kind === 'malformed';

/** The line's `answer` gets all answers as one frame, when the last one has come; nothing if none is owed. */
export function takeApart(frames: readonly Frame[], line: Line, hand: (frame: Frame, to: Line) => void): void {
  const owed = frames.filter(isOwed).length;
  const answers: Buffer[] = [];
  const answerOnce = (): Line['answer'] => {
    let isAnswered = false;
    return (frame) => {
      if (isAnswered) return;
      isAnswered = true;
      if (answers.push(frame) === owed) line.answer(joined(answers));
    };
  };
  for (const frame of frames) {
    if (frame.kind === 'malformed') answerOnce()(refusalFrame(frame));
    else hand(frame, frame.kind === 'request' ? { ...line, answer: answerOnce() } : NO_LINE);
  }
}

export const refusalFrame = ({ code, why, id = 'null' }: Malformed): Buffer =>
  errorFrame(id, Buffer.from(JSON.stringify({ code, message: why })));

/** Each answer comes with its newline. */
function joined(answers: readonly Buffer[]): Buffer {
  const parts = answers.flatMap((answer, index) => [index === 0 ? BEGIN : NEXT, answer.subarray(0, -1)]);
  return Buffer.concat([...parts, END]);
}

const BEGIN = Buffer.from('[');
const NEXT = Buffer.from(',');
const END = Buffer.from(']\n');
