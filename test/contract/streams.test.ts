// Streams over a real store: every reader gets every event once and in order, whoever wrote it, also when the one who was
// to end the stream is gone, and also when the disk takes nothing more.

import { afterEach, beforeEach, expect, it } from 'vitest';
import type { StreamEvent } from '../../src/sessions/host.ts';
import { createStreams, type LocalStreams, type StreamsOptions } from '../../src/sessions/streams.ts';
import { openSeal } from '../../src/store/seal.ts';
import { type EventRow, openStore, type Store } from '../../src/store/store.ts';
import { realWorld } from '../../src/world/world.ts';
import { eventually } from '../support/eventually.ts';
import { type Scratch, scratch } from '../support/scratch.ts';

let dir: Scratch;
let store: Store;
const troubles: unknown[] = [];
const made: LocalStreams[] = [];

beforeEach(async () => {
  dir = await scratch();
  store = await openStore(dir.path);
});
afterEach(async () => {
  for (const streams of made.splice(0)) streams.close();
  await store.close();
  await dir[Symbol.asyncDispose]();
  expect(troubles.splice(0)).toEqual([]);
});

function streamsOf(daemon: string, more: Partial<StreamsOptions> = {}): LocalStreams {
  const onTrouble = (error: unknown) => troubles.push(error);
  const streams = createStreams({
    world: realWorld,
    store,
    seal: openSeal(dir.path),
    daemon,
    isAlive: () => true,
    maxStreams: 2,
    onTrouble,
    ...more,
  });
  made.push(streams);
  return streams;
}

/** Everything that a reader of this stream is handed, as text. */
function reader(streams: LocalStreams, stream: string, after = 0) {
  const seen: { events: StreamEvent[]; isOver: boolean } = { events: [], isOver: false };
  const stop = streams.follow(
    { stream, after },
    (event) => seen.events.push(event),
    () => {
      seen.isOver = true;
    },
  );
  return { seen, stop, texts: () => seen.events.map(({ frame }) => frame.toString()) };
}
const line = (text: string) => Buffer.from(`${text}\n`);

it('hands every event over once and in order, to a reader that comes late and to one that comes back', async () => {
  const streams = streamsOf('daemon');
  const stream = await streams.open('s', '1');
  for (const text of ['a', 'b', 'c']) void stream.append(line(text), false);
  const early = reader(streams, stream.id);
  await eventually(() => expect(early.texts()).toEqual(['a', 'b', 'c']));
  early.stop();
  for (const text of ['d', 'e']) void stream.append(line(text), false);
  void stream.append(line('f'), true);
  const place = streams.locate('s', String(early.seen.events[1]?.id));
  const back = reader(streams, stream.id, place?.after);
  await eventually(() => back.seen.isOver);
  expect(back.texts()).toEqual(['c', 'd', 'e', 'f']);
  expect(early.texts()).toEqual(['a', 'b', 'c']);
  expect(stream.primer).toBe(`${stream.id}.0`);
});

it('keeps events so that they can be read with the key of the directory only, each in its own stream', async () => {
  const streams = streamsOf('daemon');
  const [stream, other] = [await streams.open('s', '1'), await streams.open('s', '2')];
  await stream.append(line('{"result":"a secret"}'), false);
  const rows = store.all<EventRow>('eventsAfter', [stream.id, 0]);
  expect(rows).toHaveLength(1);
  expect(String(rows[0]?.frame)).not.toContain('secret');
  expect(reader(streams, stream.id).texts()).toEqual(['{"result":"a secret"}']);
  await store.commit('addEvent', [other.id, rows[0]?.frame as Buffer, 0, Date.now()]);
  await other.append(line('{"its":"own"}'), true);
  expect(reader(streams, other.id).texts()).toEqual(['{"its":"own"}']);
  expect(troubles.splice(0).map(String)).toEqual([expect.stringContaining('cannot be read')]);
});

it('reads the events that an earlier version has written in clear', async () => {
  const streams = streamsOf('daemon');
  const stream = await streams.open('s', '1');
  await store.commit('addEvent', [stream.id, Buffer.from('{"from":"before"}'), 0, Date.now()]);
  await stream.append(line('{"from":"now"}'), true);
  expect(reader(streams, stream.id).texts()).toEqual(['{"from":"before"}', '{"from":"now"}']);
});

it('shows a reader what another daemon writes', async () => {
  const [ours, theirs] = [streamsOf('daemon'), streamsOf('daemon-two')];
  const stream = await theirs.open('s', '"x"');
  const { texts, seen } = reader(ours, stream.id);
  void stream.append(line('one'), false);
  await eventually(() => expect(texts()).toEqual(['one']));
  void stream.append(line('two'), true);
  await eventually(() => seen.isOver);
  expect(texts()).toEqual(['one', 'two']);
});

it('ends what a daemon left unfinished: its own earlier life’s at once, another’s when it is asked for and dead', async () => {
  const first = streamsOf('daemon');
  const [mine, other] = [await first.open('s', '7'), await streamsOf('daemon-two').open('s', '"y"')];
  void mine.append(line('said'), false);
  const next = streamsOf('daemon', { isAlive: () => false });
  const [own, left] = [reader(next, mine.id), reader(next, other.id)];
  await eventually(() => own.seen.isOver && left.seen.isOver);
  expect(own.texts()[0]).toBe('said');
  for (const [{ texts }, id] of [
    [own, 7],
    [left, 'y'],
  ] as const)
    expect(JSON.parse(texts().at(-1) ?? '')).toMatchObject({
      id,
      error: { data: { troupe: { delivery: 'outcome unknown' } } },
    });
});

it('lets a living daemon finish its own', async () => {
  const stream = await streamsOf('daemon-two').open('s', '1');
  const { seen, texts } = reader(streamsOf('daemon'), stream.id);
  void stream.append(line('done'), true);
  await eventually(() => seen.isOver);
  expect(texts()).toEqual(['done']);
});

it('knows its own event ids, those of the session’s own streams, and no others', async () => {
  const streams = streamsOf('daemon');
  const stream = await streams.open('mine', '1');
  expect(streams.locate('mine', stream.primer)).toEqual({ stream: stream.id, after: 0 });
  const standing = streams.standing('mine');
  expect(streams.locate('mine', `${standing.stream}.5`)).toEqual({ stream: standing.stream, after: 5 });
  for (const id of [stream.primer, `${standing.stream}.5`]) expect(streams.locate('yours', id)).toBeUndefined();
  for (const id of ['', 'garbage', `${stream.id}`, `${stream.id}.x`, `${stream.id}.1 OR 1=1`])
    expect(streams.locate('mine', id)).toBeUndefined();
});

it('gives a new reader of the standing stream what nobody has read yet', async () => {
  const streams = streamsOf('daemon');
  streams.skip('s');
  streams.tell('s', line('first'));
  const { stream } = streams.standing('s');
  const one = reader(streams, stream, streams.standing('s').after);
  await eventually(() => expect(one.texts()).toEqual(['first']));
  one.stop();
  streams.tell('s', line('second'));
  const two = reader(streams, stream, streams.standing('s').after);
  await eventually(() => expect(two.texts()).toEqual(['second']));
});

it('has a limit to the streams of one session, which are free again when they end', async () => {
  const streams = streamsOf('daemon');
  const first = await streams.open('s', '1');
  await streams.open('s', '2');
  await expect(streams.open('s', '3')).rejects.toThrow('already has 2 open streams');
  await streams.open('another', '1');
  void first.append(line('done'), true);
  await streams.open('s', '4');
});

it('still tells those who are there when the disk refuses an event', async () => {
  const streams = streamsOf('daemon');
  const stream = await streams.open('s', '1');
  const { seen, texts } = reader(streams, stream.id);
  void stream.append(Buffer.alloc(40 * 2 ** 20, 0x61), true); // more than a statement may carry
  await eventually(() => seen.isOver);
  expect([texts()[0]?.length, seen.events[0]?.id]).toEqual([40 * 2 ** 20, '']);
  expect(String(troubles.splice(0))).toContain('is the most');
});
