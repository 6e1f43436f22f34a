// A large message is written without a copy, between those before and after it, and whole.

import { headers } from 'nats';
import { expect, onTestFinished, test } from 'vitest';
import { bounded } from '../../src/bus/bounds.ts';
import { eventually } from '../support/eventually.ts';
import { natsServer } from '../support/nats.ts';

test('it arrives in its place and with its headers', async () => {
  const nats = await natsServer({ maxPayload: 2 ** 20 });
  onTestFinished(() => nats[Symbol.asyncDispose]());
  const [writer, reader] = [await nats.connect(), await nats.connect()];
  onTestFinished(() => Promise.all([writer.close(), reader.close()]).then(() => {}));
  bounded(writer, { onRefused: () => {}, onFault: () => {} });
  const bodies = [1, 900_000, 3, 64 * 1024, 90_000, 0].map((size, place) => Buffer.alloc(size, 97 + place));
  const arrived: { place: string | undefined; data: Buffer }[] = [];
  reader.subscribe('ev.large', {
    callback: (_, msg) => arrived.push({ place: msg.headers?.get('place'), data: Buffer.from(msg.data) }),
  });
  await reader.flush();

  for (const [place, body] of bodies.entries()) {
    const about = headers();
    about.set('place', `${place}`);
    writer.publish('ev.large', body, place % 2 ? { headers: about } : {});
  }

  await eventually(() => expect(arrived).toHaveLength(bodies.length));
  expect(arrived.map(({ place }) => place)).toEqual(bodies.map((_, place) => (place % 2 ? `${place}` : undefined)));
  expect(arrived.map(({ data }, place) => data.equals(bodies[place] as Buffer))).not.toContain(false);
});
