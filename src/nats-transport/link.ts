// The client's end of a session over NATS. Every message up has a number and asks the broker to return it if nobody is
// there; every heartbeat is answered with what the daemon still works on. So a loss on any part of the way is noticed.

import { setTimeout as wait } from 'node:timers/promises';
import { Empty, type Msg, type NatsConnection } from 'nats';
import { maxPayload } from '../bus/frames.ts';
import { type FrameSender, frameJoiner, frameSender } from '../bus/rpc-frames.ts';
import { ledger, type Said } from './ledger.ts';
import { type Message, readMessage, type Status, unknownOutcome } from './message.ts';
import { createOpenings } from './opening.ts';
import { wayBack } from './return.ts';
import { natsWire } from './wire.ts';

export type LinkOptions = {
  readonly nc: NatsConnection;
  /** Where a session is opened, and where one comes back to it. */
  readonly subject: string;
  readonly inboxPrefix: string;
  readonly heartbeatMs: number;
  readonly patienceMs: number;
  readonly onMessage: (message: Message) => void;
  readonly onError: (error: Error) => void;
  readonly onClose: () => void;
  readonly onSession: (id: string) => void;
};
export type NatsLink = ReturnType<typeof natsLink>;

type Session = { readonly id: string; readonly beatMs: number; readonly sender: FrameSender };

const MAX_FRAME_BYTES = 512 * 2 ** 20;
const HEADER_ROOM = 1024;
const GOODBYE_MS = 1_000;

export function natsLink(options: LinkOptions) {
  const { nc, subject, onError } = options;
  const book = ledger();
  const openings = createOpenings();
  const wire = natsWire({
    ...{ nc, inboxPrefix: options.inboxPrefix, onMessage: take, onNobody: nobody, onError, onClosed: finish },
    onReturned(number) {
      book.returned(number);
      comeBack();
    },
    onReconnect() {
      isHeard = true;
      restartHeart();
      if (back.isAsking) back.tell('nobody');
      else beat();
    },
  });
  const back = wayBack({
    ...{ patienceMs: options.patienceMs, down: () => wire.down },
    ask: () => wire.askAnew(subject, { 'Mcp-Session-Id': session?.id ?? '', 'Mcp-Seq': String(book.next()) }),
  });
  let join = newJoiner();
  let session: Session | undefined;
  /** While no message can go up. */
  let returning: Promise<void> | undefined;
  let isGreeted = false;
  let heart: NodeJS.Timeout | undefined;
  let isHeard = true;
  let received = 0;
  let isClosed = false;

  // ── Up ───────────────────────────────────────────────────────────────────────

  async function send(message: Message): Promise<void> {
    const body = Buffer.from(JSON.stringify(message));
    while (!isClosed && (returning ?? wire.down) !== undefined) await (returning ?? wire.down);
    if (isClosed) throw new Error('the session is closed; connect again');
    if (!session) return open(message, body);
    say(book.note(message, body));
  }

  async function open(message: Message, body: Buffer): Promise<void> {
    if (body.length + HEADER_ROOM > maxPayload(nc))
      throw new Error(`the first message has ${body.length} bytes, too many for one NATS message`);
    book.note(message, body).isOut = true;
    await openings.ask(() => wire.ask(subject, body));
  }

  function say(said: Said): void {
    const going = session?.sender.send(said.body, undefined, wire.returnTo(said.number));
    said.isOut = !going;
    void going?.then((isOut) => {
      said.isOut = isOut;
    });
  }

  function restartHeart(): void {
    clearInterval(heart);
    if (!session || isClosed) return;
    heart = setInterval(beat, session.beatMs);
    heart.unref();
  }

  function beat(): void {
    if (!session || returning || wire.down) return;
    if (!isHeard) return comeBack();
    isHeard = false;
    const number = book.next();
    void session.sender.send(Empty, { 'Mcp-Frame': 'ka', 'Mcp-Seq': String(number) }, wire.returnTo(number));
  }

  // ── Down ─────────────────────────────────────────────────────────────────────

  function take(msg: Msg): void {
    isHeard = true;
    const code = msg.headers?.get('Nats-Service-Error-Code');
    if (back.isAsking && code) return back.tell(code === '404' ? 'gone' : 'nobody');
    if (msg.headers?.get('Mcp-Session-Subject')) attach(msg);
    openings.answered();
    join(msg);
  }

  function attach({ headers }: Msg): void {
    const [id = '', to = ''] = [headers?.get('Mcp-Session-Id'), headers?.get('Mcp-Session-Subject')];
    const beatMs = Math.min(options.heartbeatMs, (Number(headers?.get('Mcp-Session-Lease')) || Number.MAX_VALUE) / 3);
    const sender = frameSender(nc, (body, more, reply = '') => wire.publish(to, body, more, reply));
    session = { id, beatMs, sender };
    isGreeted = returning !== undefined;
    received = isGreeted ? 0 : -1; // the daemon does not count its answer to initialize
    join = newJoiner();
    wire.turn();
    restartHeart();
    options.onSession(id);
  }

  function newJoiner(): (msg: Msg) => void {
    return frameJoiner({ maxBytes: MAX_FRAME_BYTES, onFrame: receive, onBroken: (why) => onError(new Error(why)) });
  }

  function receive(frame: Buffer): void {
    const read = readMessage(frame);
    if (!read) return onError(new Error('what came is no JSON-RPC message'));
    if ('sent' in read) return learn(read);
    received += 1;
    if (book.accept(read)) options.onMessage(read);
  }

  /** What the daemon says to a heartbeat, and to a client that comes back. */
  function learn({ seen, sent, inFlight }: Status): void {
    if (received < sent) onError(new Error(`${sent - received} messages of the session were lost`));
    received = sent;
    for (const id of book.reconcile(seen, inFlight)) options.onMessage(unknownOutcome(id));
    for (const said of book.again(seen)) say(said);
    if (!isGreeted) return;
    isGreeted = false;
    returning = undefined;
    back.tell('here');
    onError(new Error('the daemon was lost and is back; notifications of the time between may be lost'));
  }

  // ── Lost, and back ───────────────────────────────────────────────────────────

  function nobody(): void {
    if (back.isAsking) return back.tell('nobody');
    openings.refused(`nobody serves ${subject}; is the daemon up, and does troupe ps list the server?`);
  }

  function comeBack(): void {
    if (!session || returning || isClosed) return;
    session.sender.stop();
    returning = back.go().catch((error) => {
      onError(error);
      finish();
    });
  }

  async function close(): Promise<void> {
    if (isClosed) return;
    if (session && !returning && !wire.down && !nc.isClosed()) {
      void session.sender.send(Empty, { 'Mcp-Frame': 'end' });
      // Whoever closes the connection next must not be faster than the goodbye.
      await Promise.race([nc.flush(), wait(GOODBYE_MS, undefined, { ref: false })]).catch(onError);
    }
    finish();
  }

  function finish(): void {
    if (isClosed) return;
    isClosed = true;
    clearInterval(heart);
    session?.sender.stop();
    back.stop();
    wire.close();
    openings.refused('the session was closed before it was open');
    options.onClose();
  }

  return { send, close };
}
