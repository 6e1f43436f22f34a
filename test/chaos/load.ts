// Callers that do not stop: some on NATS, some on the control socket, each making its next call when the last one has an
// answer or none is to be expected any more.

import { connect as connectSocket, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { createInbox, type Msg, type NatsConnection } from 'nats';
import { splitLines } from '../../src/protocol/lines.ts';
import type { Fate, Ledger } from './ledger.ts';
import type { Random } from './random.ts';

export type Load = { stop(): Promise<void> };
export type LoadOptions = {
  readonly nc: NatsConnection;
  readonly socket: string;
  readonly servers: readonly string[];
  readonly ledger: Ledger;
  readonly random: Random;
};

const CALLERS = 20;
/** More than the servers' own deadline: who waits longer than this waits in vain. */
const PATIENCE_MS = 20_000;

export function startLoad(options: LoadOptions): Load {
  let isOver = false;
  const doors = [natsDoor(options), socketDoor(options, () => isOver), socketDoor(options, () => isOver)];
  const callers = doors.flatMap((door) => Array.from({ length: CALLERS }, () => keepCalling(door)));

  async function keepCalling({ name, canSend, send }: Door): Promise<void> {
    const { ledger, servers, random } = options;
    while (!isOver) {
      if (!canSend()) {
        await pause(20);
        continue;
      }
      const entry = ledger.open(name);
      const settled = new Promise<void>((resolve) => {
        entry.onAnswer = resolve;
      });
      send(entry.id, random.oneOf(servers), random.between(0, 150));
      await Promise.race([settled, pause(entry.isExcused ? 100 : PATIENCE_MS, undefined, { ref: false })]);
      if (entry.isExcused) await pause(50); // nobody is there; asking faster does not bring them back
    }
  }

  return {
    async stop() {
      isOver = true;
      await Promise.all(callers);
      for (const door of doors) door.close();
    },
  };
}

type Send = (id: string, server: string, ms: number) => void;
type Door = { readonly name: string; readonly canSend: () => boolean; readonly send: Send; close(): void };

// ── NATS ─────────────────────────────────────────────────────────────────────

const TREES = ['troupe', 'troupe', 'troupe.as.bob'];

function natsDoor({ nc, ledger, random }: LoadOptions): Door {
  const inbox = createInbox();
  const take = (msg: Msg) => ledger.answered(msg.subject.slice(inbox.length + 1), natsFate(msg));
  const subscription = nc.subscribe(`${inbox}.*`, { callback: (_, msg) => take(msg) });
  return {
    name: 'nats',
    canSend: () => true, // the client does not say when it would lose what it is given, and neither do we
    send(id, server, ms) {
      const subject = `${random.oneOf(TREES)}.call.${server}.tally`;
      nc.publish(subject, JSON.stringify({ id, ms }), { reply: `${inbox}.${id}` });
    },
    close: () => subscription.unsubscribe(),
  };
}

function natsFate(msg: Msg): Fate {
  if (!msg.headers) return 'answered';
  if (msg.headers.code === 503) return 'nobody';
  return msg.json<{ data: { troupe: { delivery: Fate } } }>().data.troupe.delivery;
}

// ── The control socket ───────────────────────────────────────────────────────

let connections = 0;

/** A connection that is made again when the daemon comes back. Its door has its own name: only it is cut with it. */
function socketDoor({ socket: path, ledger }: LoadOptions, isOver: () => boolean): Door {
  const name = `socket ${++connections}`;
  let socket: Socket;
  ledger.cut(name);
  open();

  function open(): void {
    socket = connectSocket(path);
    socket.once('connect', () => ledger.mended(name));
    socket.on('error', () => {}); // 'close' follows
    socket.once('close', () => {
      ledger.cut(name);
      if (!isOver()) setTimeout(open, 20);
    });
    const lines = splitLines({ maxBytes: 2 ** 20, onLine: (line) => take(line.toString()), onTooLong: () => {} });
    socket.on('data', lines.push);
  }

  function take(line: string): void {
    const { id, result, error } = JSON.parse(line);
    ledger.answered(id, result ? 'answered' : error.data.troupe.delivery);
  }

  return {
    name,
    canSend: () => socket.readyState === 'open',
    send(id, server, ms) {
      const params = { server, method: 'tools/call', params: { name: 'tally', arguments: { id, ms } } };
      socket.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'call', params })}\n`);
    },
    close: () => socket.destroy(),
  };
}
