// The client's end of a session over NATS. Every message up has a number and asks the broker to return it if it has no
// subscriber; every heartbeat is answered with the requests that the daemon works on. So every loss is noticed.

import { setTimeout as wait } from 'node:timers/promises';
import { Empty, type Msg, type NatsConnection } from 'nats';
import { HEADER_ROOM, maxPayload } from '../bus/frames.ts';
import { type FrameSender, frameJoiner, frameSender } from '../bus/rpc-frames.ts';
import { type Ledger, ledger, type Said } from './ledger.ts';
import { type Message, readMessage, type Status, unknownOutcome } from './message.ts';
import { type NatsWire, natsWire } from './wire.ts';

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

type Session = { readonly id: string; readonly beatMs: number; readonly sender: FrameSender };

const MAX_FRAME_BYTES = 512 * 2 ** 20;
const GOODBYE_MS = 1_000;

export class NatsLink {
  readonly #options: LinkOptions;
  readonly #ledger: Ledger = ledger();
  readonly #openings = new Openings();
  readonly #wire: NatsWire;
  readonly #takeover: Takeover;
  #join = this.#newJoiner();
  #session: Session | undefined;
  /** Pending while another daemon is asked to take the session over: no message can go up. */
  #returning: Promise<void> | undefined;
  /** A daemon has taken the session over, and has not yet said what it knows of it. */
  #isGreeted = false;
  #heart: NodeJS.Timeout | undefined;
  /** Anything came since the last heartbeat. */
  #isHeard = true;
  #received = 0;
  #isClosed = false;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#wire = natsWire({
      nc: options.nc,
      inboxPrefix: options.inboxPrefix,
      onMessage: (msg) => this.#take(msg),
      onNoResponder: () => this.#noResponder(),
      onReturned: (number) => {
        this.#ledger.returned(number);
        this.#comeBack();
      },
      onReconnect: () => this.#reconnected(),
      onClosed: () => this.#finish(),
      onError: options.onError,
    });
    this.#takeover = new Takeover({
      patienceMs: options.patienceMs,
      down: () => this.#wire.down,
      ask: () => {
        const headers = { 'Mcp-Session-Id': this.#session?.id ?? '', 'Mcp-Seq': String(this.#ledger.next()) };
        this.#wire.askAnew(options.subject, headers);
      },
    });
  }

  // ── Up ─────────────────────────────────────────────────────────────────────

  async send(message: Message): Promise<void> {
    const body = Buffer.from(JSON.stringify(message));
    while (!this.#isClosed && this.#blocked() !== undefined) await this.#blocked();
    if (this.#isClosed) throw new Error('the session is closed; connect again');
    if (!this.#session) return this.#open(message, body);
    this.#say(this.#ledger.note(message, body));
  }

  /** Pending while no message can go up. */
  #blocked(): Promise<void> | undefined {
    return this.#returning ?? this.#wire.down;
  }

  async #open(message: Message, body: Buffer): Promise<void> {
    const { nc, subject } = this.#options;
    if (body.length + HEADER_ROOM > maxPayload(nc))
      throw new Error(`the first message has ${body.length} bytes, too many for one NATS message`);
    this.#ledger.note(message, body).isOut = true;
    await this.#openings.ask(() => this.#wire.ask(subject, body));
  }

  #say(said: Said): void {
    const going = this.#session?.sender.send(said.body, undefined, this.#wire.returnTo(said.number));
    said.isOut = !going;
    void going?.then((isOut) => {
      said.isOut = isOut;
    });
  }

  #restartHeart(): void {
    clearInterval(this.#heart);
    if (!this.#session || this.#isClosed) return;
    this.#heart = setInterval(() => this.#beat(), this.#session.beatMs);
    this.#heart.unref();
  }

  #beat(): void {
    if (!this.#session || this.#blocked() !== undefined) return;
    if (!this.#isHeard) return this.#comeBack();
    this.#isHeard = false;
    const number = this.#ledger.next();
    const headers = { 'Mcp-Frame': 'ka', 'Mcp-Seq': String(number) };
    void this.#session.sender.send(Empty, headers, this.#wire.returnTo(number));
  }

  // ── Down ───────────────────────────────────────────────────────────────────

  #take(msg: Msg): void {
    this.#isHeard = true;
    const code = msg.headers?.get('Nats-Service-Error-Code');
    if (this.#takeover.isAsking && code) return this.#takeover.tell(code === '404' ? 'gone' : 'nobody');
    if (msg.headers?.get('Mcp-Session-Subject')) this.#attach(msg);
    this.#openings.answered();
    this.#join(msg);
  }

  #attach({ headers }: Msg): void {
    const { nc, heartbeatMs, onSession } = this.#options;
    const [id = '', to = ''] = [headers?.get('Mcp-Session-Id'), headers?.get('Mcp-Session-Subject')];
    const beatMs = Math.min(heartbeatMs, (Number(headers?.get('Mcp-Session-Lease')) || Number.MAX_VALUE) / 3);
    const sender = frameSender(nc, (body, more, reply = '') => this.#wire.publish(to, body, more, reply));
    this.#session = { id, beatMs, sender };
    this.#isGreeted = this.#returning !== undefined;
    this.#received = this.#isGreeted ? 0 : -1; // the daemon does not count its answer to initialize
    this.#join = this.#newJoiner();
    this.#wire.hearLatest();
    this.#restartHeart();
    onSession(id);
  }

  #newJoiner(): (msg: Msg) => void {
    return frameJoiner({
      maxBytes: MAX_FRAME_BYTES,
      onFrame: (frame) => this.#receive(frame),
      onBroken: (why) => this.#options.onError(new Error(why)),
    });
  }

  #receive(frame: Buffer): void {
    const read = readMessage(frame);
    if (!read) return this.#options.onError(new Error('what came is no JSON-RPC message'));
    if ('sent' in read) return this.#learn(read);
    this.#received += 1;
    if (this.#ledger.accept(read)) this.#options.onMessage(read);
  }

  /** The daemon's answer to a heartbeat, and to a client that comes back. */
  #learn({ seen, sent, inFlight }: Status): void {
    const { onMessage, onError } = this.#options;
    if (this.#received < sent) onError(new Error(`${sent - this.#received} messages of the session were lost`));
    this.#received = sent;
    for (const id of this.#ledger.reconcile(seen, inFlight)) onMessage(unknownOutcome(id));
    for (const said of this.#ledger.again(seen)) this.#say(said);
    if (!this.#isGreeted) return;
    this.#isGreeted = false;
    this.#returning = undefined;
    this.#takeover.tell('here');
    onError(new Error('the daemon was lost and is back; notifications of the time between may be lost'));
  }

  // ── Lost, and back ─────────────────────────────────────────────────────────

  #noResponder(): void {
    if (this.#takeover.isAsking) return this.#takeover.tell('nobody');
    const { subject } = this.#options;
    this.#openings.refused(`nobody serves ${subject}; is the daemon up, and does troupe ps list the server?`);
  }

  #reconnected(): void {
    this.#isHeard = true;
    this.#restartHeart();
    if (this.#takeover.isAsking) this.#takeover.tell('nobody');
    else this.#beat();
  }

  #comeBack(): void {
    if (!this.#session || this.#returning || this.#isClosed) return;
    this.#session.sender.stop();
    this.#returning = this.#takeover.go().catch((error) => {
      this.#options.onError(error);
      this.#finish();
    });
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    const { nc, onError } = this.#options;
    if (this.#session && this.#blocked() === undefined && !nc.isClosed()) {
      void this.#session.sender.send(Empty, { 'Mcp-Frame': 'end' });
      // Flushed, because the user may close the connection next.
      await Promise.race([nc.flush(), wait(GOODBYE_MS, undefined, { ref: false })]).catch(onError);
    }
    this.#finish();
  }

  #finish(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#heart);
    this.#session?.sender.stop();
    this.#takeover.stop();
    this.#wire.close();
    this.#openings.refused('the session was closed before it was open');
    this.#options.onClose();
  }
}

/**
 * Messages that are sent before there is a session. Each is settled by the answer of the daemon, so that a server that is not
 * there is an error of the message that asked for it.
 */
class Openings {
  readonly #waiting = new Set<{ readonly resolve: () => void; readonly reject: (error: Error) => void }>();

  ask(publish: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.add({ resolve, reject });
      publish();
    });
  }

  answered(): void {
    for (const { resolve } of this.#waiting) resolve();
    this.#waiting.clear();
  }

  refused(why: string): void {
    for (const { reject } of this.#waiting) reject(new Error(why));
    this.#waiting.clear();
  }
}

// ── Another daemon takes the session over ────────────────────────────────────

/** A daemon has the session · none does yet · the session is over. */
type Reply = 'here' | 'nobody' | 'gone';

type TakeoverOptions = {
  readonly ask: () => void;
  /** Pending while there is no connection; that time is not counted. */
  readonly down: () => Promise<void> | undefined;
  readonly patienceMs: number;
};

const ANSWER_MS = 5_000;
const PAUSES_MS = [50, 100, 250, 500, 1_000];

/** Asks again and again until a daemon takes the session over, the session is over, or patience is at its end. */
class Takeover {
  readonly #options: TakeoverOptions;
  #settle: ((reply: Reply) => void) | undefined;
  #isOver = false;

  constructor(options: TakeoverOptions) {
    this.#options = options;
  }

  get isAsking(): boolean {
    return this.#settle !== undefined;
  }

  tell(reply: Reply): void {
    this.#settle?.(reply);
  }

  /** Throws the sentence that says why the session is lost. */
  async go(): Promise<void> {
    const { down, patienceMs } = this.#options;
    let giveUpAt = performance.now() + patienceMs;
    for (let count = 0; !this.#isOver; count++) {
      if (down() !== undefined) {
        await down();
        giveUpAt = performance.now() + patienceMs;
      }
      const reply = this.#isOver ? 'here' : await this.#attempt();
      if (reply === 'here') return;
      if (reply === 'gone') throw new Error('the session is over; connect again');
      if (performance.now() > giveUpAt) throw new Error(`nobody took the session over within ${patienceMs} ms`);
      await wait(PAUSES_MS[Math.min(count, PAUSES_MS.length - 1)], undefined, { ref: false });
    }
  }

  #attempt(): Promise<Reply> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.tell('nobody'), ANSWER_MS);
      timer.unref();
      this.#settle = (reply) => {
        clearTimeout(timer);
        this.#settle = undefined;
        resolve(reply);
      };
      this.#options.ask();
    });
  }

  stop(): void {
    this.#isOver = true;
    this.tell('here');
  }
}
