// Small messages, which do not pass through what the client makes of a message: they arrive like all others, in their order.

import { headers } from 'nats';
import { expect, it } from 'vitest';
import { slabbed } from '../../src/bus/small.ts';
import { eventually } from '../support/eventually.ts';
import { natsServer } from '../support/nats.ts';

it('small, large, empty and with headers, all arrive whole, in order, and are counted', async () => {
  await using nats = await natsServer({});
  const reader = await nats.connect();
  const seen: [subject: string, text: string, mark: string | undefined][] = [];
  reader.subscribe('small.>', {
    callback: (_, msg) => void seen.push([msg.subject, msg.string(), msg.headers?.get('Mark')]),
  });
  await reader.flush();
  const plain = await nats.connect();
  const writer = slabbed(await nats.connect());
  const sent: typeof seen = [];
  const mark = headers();
  mark.set('Mark', 'yes');
  for (let at = 0; at < 2_000; at++) {
    const subject = at % 3 ? 'small.one' : 'small.zwölf.日本';
    const text = 'ä'.repeat(at % 250) + 'x'.repeat((at * 37) % 4_400);
    const isMarked = at % 7 === 0;
    sent.push([subject, text, isMarked ? 'yes' : undefined]);
    for (const each of [writer, plain])
      each.publish(each === plain ? 'elsewhere' : subject, Buffer.from(text), isMarked ? { headers: mark } : undefined);
  }
  await writer.flush();
  await eventually(() => seen.length === sent.length);
  expect(seen).toEqual(sent);
  expect([writer.stats().outMsgs, writer.stats().outBytes]).toEqual([plain.stats().outMsgs, plain.stats().outBytes]);
  for (const each of [reader, plain, writer]) await each.close();
});
