// The bus: whatever a client of NATS can publish, byte for byte, with subjects, reply subjects and headers of every kind.

import { askControl } from '../../support/control.ts';
import { rawNats } from '../../support/raw-nats.ts';
import { type BusMessage, message } from '../arbitraries/bus.ts';
import { variantOf } from '../arbitraries/messages.ts';
import type { Target } from '../target.ts';

type Input = { readonly [Part in keyof BusMessage]?: string };

const BATCH = 50;
const latin = (bytes: Buffer): string => bytes.toString('latin1');
const inputOf = ({ subject, reply, headers, body }: BusMessage): Input => ({
  subject: latin(subject),
  ...(reply && { reply: latin(reply) }),
  ...(headers && { headers: latin(headers) }),
  body: latin(body),
});
const messageOf = ({ subject = '', reply, headers, body = '' }: Input): BusMessage => ({
  subject: Buffer.from(subject, 'latin1'),
  ...(reply && { reply: Buffer.from(reply, 'latin1') }),
  ...(headers && { headers: Buffer.from(headers, 'latin1') }),
  body: Buffer.from(body, 'latin1'),
});

export const bus: Target<Input> = {
  name: 'bus',
  inputs: message(['victim', 'puppet']).map(inputOf),
  // The rest of the line is the broker's to read, and what it cannot read it does not hand on.
  vary: (input, other, dice) => ({
    ...input,
    ...(input.headers && other.headers && { headers: variantOf(input.headers, other.headers, dice) }),
    body: variantOf(input.body ?? '', other.body ?? '', dice),
  }),
  batch: BATCH,
  async open({ d }) {
    const { NATS_URL } = await askControl<{ NATS_URL: string }>(`${d.state}/control.sock`, 'env');
    const { port, username } = new URL(NATS_URL);
    const stranger = await rawNats(Number(port), username);
    return {
      async feed(inputs) {
        for (let at = 0; at < inputs.length; at += BATCH) {
          for (const input of inputs.slice(at, at + BATCH)) stranger.publish(messageOf(input));
          await stranger.flush();
        }
      },
      [Symbol.asyncDispose]: () => stranger[Symbol.asyncDispose](),
    };
  },
};
