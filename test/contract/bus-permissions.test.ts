// A broker that does not allow what we publish or subscribe to: told in the log at a bounded pace, and never tried again and again.

import { Events, type NatsConnection } from 'nats';
import pino from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { createBus } from '../../src/bus/bus.ts';
import { natsPublisher, outbox } from '../../src/bus/outbox.ts';
import { openStore } from '../../src/store/store.ts';
import { eventually } from '../support/eventually.ts';
import { natsServer } from '../support/nats.ts';
import { scratch } from '../support/scratch.ts';

test('what is forbidden is told once in a while, holds up nothing, and does not cost the connection', async () => {
  const permissions = { publish: { deny: ['ev.secret.>'] }, subscribe: { deny: ['svc.secret'] } };
  const nats = await natsServer({ user: { user: 'troupe', password: 'p', permissions } });
  const directory = await scratch();
  const store = await openStore(directory.path, { ballastBytes: 0 });
  const box = outbox(store);
  const lines: string[] = [];
  const connections: NatsConnection[] = [];
  const bus = createBus({
    name: 'troupe test',
    env: { NATS_URL: nats.url.replace('//', '//troupe:p@') },
    directory: directory.path,
    user: 'daemon',
    cache: directory.path,
    nats: { maxPayloadBytes: 2 ** 20, subject: 'troupe' },
    logger: pino({}, { write: (line: string) => void lines.push(JSON.parse(line).msg) }),
    onFetch: () => {},
    onConnection(nc) {
      connections.push(nc);
      box.online(natsPublisher(nc));
    },
    onReconnect: (nc) => box.online(natsPublisher(nc)),
    beforeDrain: () => box.idle(),
    onCrash: (why) => void lines.push(`crashed: ${why}`),
  });
  onTestFinished(async () => {
    await bus.leave();
    await store.close();
    await nats[Symbol.asyncDispose]();
    await directory[Symbol.asyncDispose]();
  });
  bus.start();
  await eventually(() => expect(connections).toHaveLength(1));
  const [nc] = connections;
  let cuts = 0;
  void (async () => {
    for await (const { type } of nc?.status() ?? []) if (type === Events.Disconnect) cuts += 1;
  })();
  const heard: string[] = [];
  const reader = await nats.connect();
  reader.subscribe('ev.>', { callback: (_, msg) => void heard.push(msg.subject) });
  await reader.flush();

  const troubles: string[] = [];
  nc?.subscribe('svc.secret', { callback: (error) => void troubles.push(String(error)) });
  for (let at = 0; at < 50; at++) await box.add(at % 2 ? 'ev.open' : `ev.secret.${at}`, Buffer.from('{}'));
  await eventually(() => expect(heard.filter((subject) => subject === 'ev.open')).toHaveLength(25));
  await box.idle();
  expect(heard).toHaveLength(25);
  expect(store.get<{ depth: number }>('outboxDepth')?.depth).toBe(0);
  const told = () => lines.filter((line) => line.includes('does not let us'));
  await eventually(() =>
    expect(told()).toEqual(['the broker does not let us subscribe to svc.secret; its permissions must allow it']),
  );
  expect(troubles).toHaveLength(1);
  expect([cuts, bus.status().state]).toEqual([0, 'online']);
});
