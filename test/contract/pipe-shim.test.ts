// What the shim does with the host's messages while daemons come and go: each request is answered once, sent once, and
// a host that was initialized never has to be again.

import { beforeEach, describe, expect, it } from 'vitest';
import { ShimSession } from '../../src/cli/connect/session.ts';

const INITIALIZE = '{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25"}}';
const INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}';
const RESULT = '{"jsonrpc":"2.0","id":"i","result":{"capabilities":{"tools":{},"resources":{}}}}';
const call = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{}}`;
const result = (id: number) => `{"jsonrpc":"2.0","id":${id},"result":{}}`;

let shim: ShimSession;
let host: string;
let refused: string[];

beforeEach(() => {
  [host, refused] = ['', []];
  shim = new ShimSession({
    toHost: (bytes) => {
      host += bytes;
    },
    onRefused: (why) => refused.push(why),
  });
});

const fromHost = (...lines: string[]) => lines.forEach((line) => void shim.fromHost(Buffer.from(line)));
const fromDaemon = (...lines: string[]) => lines.forEach((line) => void shim.fromDaemon(Buffer.from(line)));
/** What the host was told since the last look. */
function heard(): any[] {
  const lines = host.split('\n').slice(0, -1);
  host = '';
  return lines.map((line) => JSON.parse(line));
}
/** A daemon, and what it was sent. */
function link(isResumed: boolean): string[] {
  const lines: string[] = [];
  shim.linked((line) => lines.push(String(line)), isResumed);
  return lines;
}
function opened(): string[] {
  const lines = link(false);
  fromHost(INITIALIZE);
  fromDaemon('{"jsonrpc":"2.0","method":"troupe/session","params":{"session":"s1"}}', RESULT);
  fromHost(INITIALIZED);
  heard();
  lines.length = 0;
  return lines;
}

describe('with a daemon', () => {
  it('passes lines as they are, and keeps the session id from the host', () => {
    const daemon = link(false);
    fromHost(INITIALIZE, '{ "jsonrpc":"2.0", "id": 1, "method":"x" }');
    expect(daemon).toEqual([INITIALIZE, '{ "jsonrpc":"2.0", "id": 1, "method":"x" }']);
    fromDaemon('{"jsonrpc":"2.0","method":"troupe/session","params":{"session":"s1"}}', RESULT);
    expect(heard()).toEqual([JSON.parse(RESULT)]);
    expect(shim.id).toBe('s1');
  });

  it('passes one answer to each request, and no second one', () => {
    opened();
    fromHost(call(1), call(2));
    fromDaemon(result(2), result(1), result(1), result(9));
    expect(heard().map(({ id }) => id)).toEqual([2, 1]);
    expect(shim.isBusy).toBe(false);
  });

  it('passes the refusal of a request that can be read no further than its id', () => {
    const daemon = opened();
    const deep = `{"jsonrpc":"2.0","id":7,"method":"ping","params":${'['.repeat(1_000)}`;
    fromHost(deep, '{"jsonrpc":"2.0","id":8,"method":9}');
    expect(daemon).toHaveLength(2);
    for (const id of [7, 8]) fromDaemon(`{"jsonrpc":"2.0","id":${id},"error":{"code":-32600,"message":"no"}}`);
    expect(heard().map(({ id }) => id)).toEqual([7, 8]);
  });

  it('counts the messages of a batch one by one', () => {
    opened();
    fromHost(`[${call(1)},${call(2)},${INITIALIZED}]`);
    fromDaemon(`[${result(1)}]`);
    shim.lost();
    expect(
      heard()
        .flat()
        .map(({ id, error }) => [id, error?.code]),
    ).toEqual([
      [1, undefined],
      [2, -32011],
    ]);
  });
});

describe('without one', () => {
  it('says of each request in flight, once, that its outcome is unknown', () => {
    opened();
    fromHost(call(1), call(2));
    fromDaemon(result(1));
    heard();
    shim.lost();
    expect(heard()).toMatchObject([
      { id: 2, error: { code: -32011, data: { troupe: { code: 'lost', delivery: 'outcome unknown' } } } },
    ]);
    shim.lost();
    link(true);
    fromDaemon(result(2));
    expect(heard()).toEqual([]);
  });

  it('keeps what comes, and sends it once to the next daemon, in order', () => {
    opened();
    shim.lost();
    fromHost(call(3), call(4));
    expect(shim.isBusy).toBe(true);
    const daemon = link(true);
    expect(daemon).toEqual([call(3), call(4)]);
    fromDaemon(result(3));
    expect(heard().map(({ id }) => id)).toEqual([3]);
  });

  it('keeps only so much, and refuses the rest as not sent', () => {
    opened();
    shim.lost();
    const large = call(1).replace('{}', `{"text":"${'x'.repeat(10 * 1024 * 1024)}"}`);
    fromHost(large, large.replace('"id":1', '"id":2'));
    expect(heard()).toMatchObject([{ id: 2, error: { code: -32012, data: { troupe: { delivery: 'not sent' } } } }]);
  });

  it('tells whoever waits why no daemon came', () => {
    fromHost(INITIALIZE, INITIALIZED);
    shim.refuseWaiting('the configuration is broken');
    expect(heard()).toMatchObject([{ id: 'i', error: { code: -32010, message: 'the configuration is broken' } }]);
    expect(shim.isBusy).toBe(false);
  });
});

describe('with another daemon', () => {
  it('initializes again if the session is not known there, unseen by the host but for its lists', () => {
    opened();
    shim.lost();
    fromHost(call(1));
    const daemon = link(false);
    expect(daemon).toEqual([INITIALIZE]);
    fromDaemon('{"jsonrpc":"2.0","method":"troupe/session","params":{"session":"s2"}}', RESULT);
    expect(daemon).toEqual([INITIALIZE, INITIALIZED, call(1)]);
    expect(shim.id).toBe('s2');
    expect(heard().map(({ method }) => method)).toEqual([
      'notifications/tools/list_changed',
      'notifications/resources/list_changed',
    ]);
  });

  it('gives up when that is refused', () => {
    opened();
    shim.lost();
    link(false);
    fromDaemon('{"jsonrpc":"2.0","id":"i","error":{"code":-32602,"message":"there is no server files"}}');
    expect(refused).toEqual(['there is no server files']);
    expect(heard()).toEqual([]);
  });

  it('sends an initialize again that had no answer, and passes the answer on', () => {
    link(false);
    fromHost(INITIALIZE);
    fromDaemon('{"jsonrpc":"2.0","method":"troupe/session","params":{"session":"s1"}}');
    shim.lost();
    expect([heard(), shim.id]).toEqual([[], '']);
    expect(link(false)).toEqual([INITIALIZE]);
    fromDaemon(RESULT);
    expect(heard()).toEqual([JSON.parse(RESULT)]);
  });

  it('withdraws the questions of the dead one, and keeps their late answers from the new one', () => {
    opened();
    fromDaemon('{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{}}');
    heard();
    shim.lost();
    expect(heard()).toMatchObject([{ method: 'notifications/cancelled', params: { requestId: 7 } }]);
    const daemon = link(true);
    fromHost(result(7));
    expect(daemon).toEqual([]);
  });
});
