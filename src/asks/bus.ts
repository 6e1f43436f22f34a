// The rung of the ladder that is on the bus: services are asked on `troupe.ask.<caller>.<kind>.<server>`, and whoever is
// there may answer, pass, or say nothing. Nobody there is no error, and an answer that comes late still counts.

import { createInbox, type Msg, type NatsConnection } from 'nats';
import { json, maxPayload } from '../bus/frames.ts';
import type { Subjects } from '../bus/subjects.ts';
import type { AskSettings } from '../config/schema.ts';
import { sentence, TroupeError } from '../protocol/failures.ts';
import { textAt } from '../protocol/rewrite.ts';
import { isJsonObject } from '../protocol/value.ts';
import type { AskView, Reply } from './ask.ts';
import { replyOf } from './replies.ts';

export type AnswerersOptions = {
  readonly subjects: Subjects;
  readonly settings: () => Pick<AskSettings, 'answererMs'>;
  readonly onTrouble: (why: unknown) => void;
};

/** Resolves with why the answer cannot stand, for whoever gave it; with nothing when the question is settled. */
export type Accept = (reply: Reply) => Promise<string | undefined>;

export type Answerers = {
  online(nc: NatsConnection): void;
  /** Who waits for a service waits no longer. */
  offline(): void;
  /**
   * Resolves when the ladder may go on: it was answered, or nobody there wants to, or none did in time. Until `signal` is
   * aborted, which is when the question ends, a late answer is accepted too. Never rejects.
   */
  ask(view: AskView, signal: AbortSignal, accept: Accept): Promise<void>;
};

/** A service that does not understand what is wrong is not asked for ever, and none is listened to for ever. */
const MAX_REQUESTS = 3;
const MAX_REPLIES = 16;

export function createAnswerers({ subjects, settings, onTrouble }: AnswerersOptions): Answerers {
  let nc: NatsConnection | undefined;
  const waiting = new Set<() => void>();

  return {
    online(connection) {
      nc = connection;
    },
    offline() {
      nc = undefined;
      for (const pass of waiting) pass();
    },
    async ask(view, signal, accept) {
      if (!nc || nc.isClosed() || nc.isDraining() || signal.aborted) return;
      const connection = nc;
      let passed = (): void => {};
      await new Promise<void>((pass) => {
        passed = pass;
        waiting.add(pass);
        const subject = subjects.ask(view.principal, view.kind, view.server);
        const patienceMs = Math.min(settings().answererMs, view.expiresAt - Date.now());
        converse(connection, { view, signal, accept, subject, patienceMs, pass, onTrouble });
      }).catch(onTrouble); // the connection went away this very moment
      waiting.delete(passed);
    },
  };
}

type Conversation = {
  readonly view: AskView;
  readonly signal: AbortSignal;
  readonly accept: Accept;
  readonly subject: string;
  readonly patienceMs: number;
  readonly pass: () => void;
  readonly onTrouble: (why: unknown) => void;
};

/** One question, asked again with what was wrong about the answer, until an answer stands or the question ends. */
function converse(nc: NatsConnection, conversation: Conversation): void {
  const { view, signal, accept, subject, patienceMs, pass, onTrouble } = conversation;
  const { waitsOn: _, ...asked } = view;
  const about = `the ${view.kind} ${view.id} of ${view.server}`;
  const inbox = createInbox(inboxPrefixOf(nc));
  let [requests, replies] = [0, 0];
  let timer: NodeJS.Timeout | undefined;
  const subscription = nc.subscribe(inbox, {
    callback: (error, msg) => void (error ? fail(error) : take(msg)).catch(fail),
  });
  signal.addEventListener('abort', end, { once: true });
  request();

  function end(): void {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
    if (!nc.isClosed()) subscription.unsubscribe();
    pass();
  }

  async function fail(error: unknown): Promise<void> {
    onTrouble(error);
    end();
  }

  function request(error?: string): void {
    clearTimeout(timer);
    const body = json(error === undefined ? asked : { ...asked, error });
    if (body.length > maxPayload(nc)) {
      onTrouble(`${about} has ${body.length} bytes, too many for the bus; no service was asked`);
      return end();
    }
    requests++;
    timer = setTimeout(pass, Math.max(0, patienceMs));
    nc.publish(subject, body, { reply: inbox });
    nc.flush().catch(pass); // the bus is away, and what is published then is lost
  }

  async function take(msg: Msg): Promise<void> {
    if (signal.aborted) return;
    if (msg.headers?.code === NO_RESPONDERS) return end();
    if (msg.headers?.has('Nats-Service-Error') || msg.headers?.has('Nats-Service-Error-Code')) {
      // Its own words are left out: they may repeat what was asked.
      onTrouble(
        `a service that was asked ${about} failed (${Number(msg.headers.get('Nats-Service-Error-Code')) || 500})`,
      );
      return pass();
    }
    const body = Buffer.from(msg.data.buffer, msg.data.byteOffset, msg.data.byteLength);
    if (isPass(body)) return pass();
    if (++replies > MAX_REPLIES) return end();
    const why = await judge(body);
    if (why === undefined) return end();
    if (signal.aborted) return;
    if (requests < MAX_REQUESTS) return request(why);
    if (replies === MAX_REQUESTS) onTrouble(`services gave ${replies} answers to ${about} that cannot stand`);
    pass();
  }

  async function judge(body: Buffer): Promise<string | undefined> {
    try {
      return await accept(replyOf(body, view.kind));
    } catch (error) {
      // Whoever was quicker has settled it; anything else of ours is no reason to ask the service again.
      if (error instanceof TroupeError && (error.code === 'invalid' || error.code === 'malformed'))
        return sentence(error);
      if (!(error instanceof TroupeError)) onTrouble(error);
      return undefined;
    }
  }
}

const NO_RESPONDERS = 503;

/** A broker may let us listen under our own prefix only. */
const inboxPrefixOf = (nc: NatsConnection): string =>
  (nc as { options?: { inboxPrefix?: string } }).options?.inboxPrefix ?? '';

/** Not mine: somebody else shall answer. */
const isPass = (body: Buffer): boolean =>
  body.length === 0 || (isJsonObject(body) && textAt(body, ['action']) === 'pass');
