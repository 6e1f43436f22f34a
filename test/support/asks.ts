// Asks of one server in this process: a real lane, session, store and validator; a caller that keeps what it is asked; no
// bus, so that the rung there passes. Gone with the scope.

import { join } from 'node:path';
import pino from 'pino';
import type { AskView, Ending } from '../../src/asks/ask.ts';
import { createAsks } from '../../src/asks/asks.ts';
import { createAnswerers } from '../../src/asks/bus.ts';
import { createValidator } from '../../src/asks/forms/validator.ts';
import type { Models } from '../../src/asks/models/models.ts';
import { createAskRows } from '../../src/asks/rows.ts';
import { subjects } from '../../src/bus/subjects.ts';
import type { Ask, Call, Outcome } from '../../src/calls/call.ts';
import { createLane } from '../../src/calls/lane.ts';
import type { InFlight } from '../../src/calls/request.ts';
import { createRequests } from '../../src/calls/requests.ts';
import { settingsSchema, troupeSchema } from '../../src/config/schema.ts';
import { createAttribution } from '../../src/servers/attribution.ts';
import { ServerSession } from '../../src/servers/connection/session.ts';
import type { Member } from '../../src/servers/member.ts';
import { openSeal } from '../../src/store/seal.ts';
import { openStore } from '../../src/store/store.ts';
import { realWorld } from '../../src/world/world.ts';
import { eventually } from './eventually.ts';
import { scratch } from './scratch.ts';

export type StageOptions = {
  /** Of the host; it cannot be asked when false. */
  readonly canAnswer?: boolean;
  readonly asks?: object;
  readonly settings?: object;
  readonly models?: Models;
};
const NO_MODELS: Models = {
  offer: () => () => {},
  hasModel: () => false,
  generate: () => Promise.reject(new Error('no model')),
};

export async function askStage({ canAnswer = true, asks: given = {}, settings = {}, models }: StageOptions = {}) {
  const dir = await scratch();
  const store = await openStore(dir.path);
  const replies: any[] = [];
  const asked: Ask[] = [];
  const withdrawn: string[] = [];
  const completed: string[] = [];
  const outcomes: Outcome[] = [];
  const closed: { view: AskView; ending: Ending }[] = [];
  const trouble: string[] = [];
  const config = { asks: troupeSchema.parse({ asks: given }).asks };
  const server = settingsSchema.parse({ timeoutMs: 5_000, maxTimeoutMs: 60_000, ...settings });
  const logger = pino({ level: 'warn' }, { write: (line: string) => void trouble.push(JSON.parse(line).msg) });
  const requests = createRequests({
    driver: 'table',
    world: realWorld,
    onCrash: (error) => trouble.push(String(error)),
  });
  const lane = createLane({
    server: 'alpha',
    settings: server,
    requests,
    refusalOf: () => undefined,
    onWanted: () => {},
    onSettled: ({ call }, outcome) => call.settle(outcome),
  });
  const member = { name: 'alpha', server: 'alpha', onBehalfOf: '_', lane, config: { settings: server } } as Member;
  const rows = createAskRows({
    store,
    seal: openSeal(dir.path),
    daemon: 'here',
    isAlive: () => false,
    world: realWorld,
    onTrouble: (error) => trouble.push(String(error)),
  });
  const asks = createAsks({
    config: () => config,
    world: realWorld,
    rows,
    validator: createValidator(),
    attribution: createAttribution(),
    logger,
    answerers: createAnswerers({
      subjects: subjects('troupe'),
      settings: () => config.asks,
      world: realWorld,
      onTrouble: () => {},
    }),
    models: models ?? NO_MODELS,
    rootsFor: () => Buffer.from('{"roots":[]}'),
    nudge: () => {},
    onOpened: () => {},
    onClosed: (view, ending) => closed.push({ view, ending }),
  });
  const nothing = () => {};
  const session = new ServerSession({
    lane,
    server: 'alpha',
    send: nothing,
    openMs: 1_000,
    maxSendBytes: () => 1_000_000,
    reply: (frame) => replies.push(JSON.parse(`${frame}`)),
    onNegotiated: nothing,
    onReady: nothing,
    onRefused: nothing,
    onDropped: nothing,
    onLateProgress: nothing,
    onNotice: (notice) => {
      if (notice.type === 'elicited') asks.completed(member, notice.elicitationId, notice.params);
    },
    onAsk: (question) => asks.take(member, question),
  });
  lane.attach({ write: nothing, cancel: (id, why) => session.cancel(id, why), hasRoom: () => true });
  lane.setGate({ mode: 'open', state: 'ready', why: '' });

  const say = (message: object) => session.receive(Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message })));
  return {
    file: join(dir.path, 'troupe.db'),
    store,
    asks,
    rows,
    requests,
    lane,
    member,
    session,
    replies,
    asked,
    withdrawn,
    completed,
    outcomes,
    closed,
    trouble,
    say,
    /** A call of that caller in flight. */
    call(requestId = 'r', more: Partial<Call> = {}): InFlight {
      return lane.submit({
        requestId,
        server: 'alpha',
        method: 'tools/call',
        name: 'file',
        params: Buffer.from('{}'),
        principal: '_',
        door: 'http',
        holder: 'session',
        settle: (outcome) => outcomes.push(outcome),
        onAsk(ask) {
          if (!canAnswer) return undefined;
          asked.push(ask);
          return {
            withdraw: () => withdrawn.push(ask.method),
            complete: (params) => completed.push(String(params)),
          };
        },
        ...more,
      }) as InFlight;
    },
    ask: (id: string, params: object = FORM, method = 'elicitation/create') => say({ id, method, params }),
    /** The only question in the inbox, once it is there. */
    theAsk: () =>
      eventually(() => {
        const [view, another] = asks.inbox.list();
        if (!view || another || !store.get('ask', [view.id])) throw new Error('not one question is open');
        return view;
      }),
    async [Symbol.asyncDispose]() {
      asks.close();
      await store.close();
      await dir[Symbol.asyncDispose]();
    },
  };
}

export const FORM = {
  message: 'How old are you?',
  requestedSchema: { type: 'object', properties: { age: { type: 'integer', minimum: 18 } }, required: ['age'] },
};
export const URL = { mode: 'url', message: 'Log in', url: 'https://example.com/x', elicitationId: 'e1' };
export const SAMPLING = { messages: [{ role: 'user', content: { type: 'text', text: 'hi' } }], maxTokens: 10 };
