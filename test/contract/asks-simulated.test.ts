// Asks of two daemons on one state directory, in one process: time, chance, the store and the bus are simulated, so that a seed
// replays every race between answers, expiry and withdrawal. What must hold is what people rely on: one answer, one end.

import pino from 'pino';
import { expect, it } from 'vitest';
import type { AskOutcome, Question, Subject } from '../../src/asks/ask.ts';
import { createAsks } from '../../src/asks/asks.ts';
import { createAskRows } from '../../src/asks/rows.ts';
import type { Signal } from '../../src/calls/call.ts';
import { settingsSchema, troupeSchema } from '../../src/config/schema.ts';
import { createAttribution } from '../../src/servers/attribution.ts';
import type { Member } from '../../src/servers/member.ts';
import type { AskRow } from '../../src/store/rows.ts';
import type { Seal } from '../../src/store/seal.ts';
import { random } from '../chaos/random.ts';
import { type SimulatedWorld, simulatedWorld } from '../support/simulated-world.ts';

type Rows = Map<string, AskRow>;

/** Statements take their time, and are done in the order in which they were given: by this daemon, and by the other. */
function memoryStore(rows: Rows, world: SimulatedWorld, delayMs: () => number) {
  let last = 0;
  const later = (name: string, params: readonly any[]): Promise<boolean> =>
    new Promise((resolve) => {
      last = Math.max(last, world.now() + delayMs());
      world.after(last - world.now(), () => resolve(execute(rows, name, params)));
    });
  return {
    write: (name: string, params: readonly any[]) => void later(name, params),
    commit: later,
    get: (_: string, [id]: any) => structuredClone(rows.get(id)),
    all: (name: string, [daemon]: any = []) => {
      const all = [...rows.values()].map((row) => structuredClone(row));
      if (name === 'openAsks') return all.filter((row) => row.status === 'open' && row.daemon !== daemon);
      if (name === 'answeredAsks') return all.filter((row) => row.status === 'answered' && row.daemon === daemon);
      throw new Error(`${name} is not simulated`);
    },
  };
}

function execute(rows: Rows, name: string, params: readonly any[]): boolean {
  const change = (id: string, isMeant: (row: AskRow) => boolean, values: Partial<AskRow>): boolean => {
    const row = rows.get(id);
    if (!row || !isMeant(row)) return false;
    rows.set(id, { ...row, ...values });
    return true;
  };
  if (name === 'addAsk') {
    const [id, kind, server, tool, principal, daemon, stage, body, opened_at, expires_at] = params;
    const row = { id, kind, server, tool, principal, daemon, stage, body, opened_at, expires_at };
    rows.set(id, { ...row, status: 'open', answer: null, answered_by: null, token: null, outcome: null } as any);
    return true;
  }
  if (name === 'setAskBody') {
    const [body, stage, id] = params;
    return change(id, ({ status }) => status === 'open', { body, stage });
  }
  if (name === 'answerAsk') {
    const [answer, answered_by, token, id, stage] = params;
    const isOpen = (row: AskRow) => row.status === 'open' && row.stage === stage;
    return change(id, isOpen, { status: 'answered', answer, answered_by, token });
  }
  if (name === 'reopenAsk') {
    const [body, stage, id] = params;
    return change(id, ({ status }) => status === 'answered', { status: 'open', body, stage, answer: null });
  }
  if (name === 'endAsk') {
    const [outcome, answered_by, , id] = params;
    return change(id, ({ status }) => status !== 'ended', { status: 'ended', outcome, answered_by, body: null });
  }
  throw new Error(`${name} is not simulated`);
}

const seal: Seal = {
  seal: (text) => Buffer.from(text),
  open: (sealed) => Buffer.from(sealed).toString(),
  openBytes: (sealed) => Buffer.from(sealed),
};

const settings = settingsSchema.parse({});
const member = { name: 'alpha', server: 'alpha', config: { settings } } as unknown as Member;

function daemonOf(name: string, { world, rows, chance, peers }: Stage, timeoutMs = 3_000) {
  const config = { asks: troupeSchema.parse({ asks: { hostMs: 200, timeoutMs } }).asks };
  const onTrouble = () => {}; // races are what this is about
  const asks = createAsks({
    config: () => config,
    world,
    rows: createAskRows({
      store: memoryStore(rows, world, () => chance.between(0, 40)) as any,
      seal,
      daemon: name,
      isAlive: () => true,
      world,
      onTrouble,
    }),
    validator: { check: async () => undefined, close() {} },
    answerers: {
      online() {},
      offline() {},
      ask: (_, signal) =>
        new Promise((resolve) => {
          world.after(chance.between(0, 300), resolve);
          signal.addEventListener('abort', () => resolve());
        }),
    },
    models: { offer: () => () => {}, hasModel: () => false, generate: () => Promise.reject(new Error('none')) },
    attribution: createAttribution(),
    rootsFor: () => Buffer.from('{}'),
    onOpened() {},
    onClosed() {},
    // A nudge is late, or lost: then the rows are looked at in time.
    nudge: () => chance.between(0, 2) > 0 && peers.forEach((look) => void world.after(chance.between(0, 50), look)),
    logger: pino({ level: 'silent' }),
  });
  peers.push(asks.inbox.look);
  return asks;
}

type Stage = {
  readonly world: SimulatedWorld;
  readonly rows: Rows;
  readonly chance: ReturnType<typeof random>;
  readonly peers: (() => void)[];
};

const QUESTIONS: readonly Question[] = [
  { kind: 'approval', message: 'delete wants to run', arguments: Buffer.from('{}') },
  { kind: 'elicitation', mode: 'form', message: 'Who are you?', schema: Buffer.from('{"type":"object"}') },
  { kind: 'elicitation', mode: 'url', message: 'Log in', url: 'https://a.b/', elicitationId: 'e', isRequired: true },
];

async function simulate(seed: number): Promise<void> {
  const stage: Stage = { world: simulatedWorld(seed), rows: new Map(), chance: random(seed), peers: [] };
  const { world, rows, chance } = stage;
  const daemons = [daemonOf('a', stage), daemonOf('b', stage)] as const;
  const ended: AskOutcome[][] = [];
  const won = new Map<string, string[]>();

  for (let n = 0; n < 6; n++) {
    const endings: AskOutcome[] = [];
    ended.push(endings);
    const asks = daemons[chance.between(0, 1)] as (typeof daemons)[number];
    const call = { principal: '_', server: 'alpha', name: 'delete' } as Subject['call'];
    const question = QUESTIONS[chance.between(0, QUESTIONS.length - 1)] as Question;
    const latestDeadline = world.now() + chance.between(500, 60_000);
    const withdraw = asks.wait(question, { call, latestDeadline }, member, (outcome) => endings.push(outcome));
    if (chance.between(0, 5) === 0) world.after(chance.between(0, 1_500), withdraw);
  }
  for (let n = 0; n < 60; n++) world.after(chance.between(0, 2_500), () => answerSomething(n));

  function answerSomething(n: number): void {
    const { inbox } = daemons[chance.between(0, 1)] as (typeof daemons)[number];
    const open = inbox.list();
    const view = open[chance.between(0, Math.max(0, open.length - 1))];
    if (!view) return;
    const action = (['accept', 'decline', 'cancel'] as const)[chance.between(0, 2)] ?? 'cancel';
    // Whoever agreed to visit an address through the other daemon may hear how it has ended since.
    const isLast = view.mode !== 'url' || view.stage === 'done' || action !== 'accept';
    inbox.answer(view.id, { action }, { by: `person ${n}`, stage: view.stage }).then(
      (outcome) => isLast && won.set(view.id, [...(won.get(view.id) ?? []), outcome]),
      (error) => expect(String(error)).toMatch(/already answered|has moved on|is over|there is no question/),
    );
  }

  await world.pass(70_000);
  expect(ended.map((endings) => endings.length)).toEqual(ended.map(() => 1));
  expect(daemons.flatMap(({ inbox }) => inbox.list())).toEqual([]);
  expect([...rows.values()].map(({ status }) => status)).toEqual(ended.map(() => 'ended'));
  expect([...rows.values()].map(({ outcome }) => outcome).sort()).toEqual(ended.flat().sort());
  for (const [id, outcomes] of won) expect(outcomes).toEqual([rows.get(id)?.outcome]);
  for (const asks of daemons) asks.close();
}

it('whoever waits for a person is told at once how to answer, and again every 15 s until it is over', async () => {
  const stage: Stage = { world: simulatedWorld(1), rows: new Map(), chance: random(1), peers: [] };
  const { world } = stage;
  const asks = daemonOf('a', stage, 120_000);
  const told: { at: number; signal: object }[] = [];
  const onSignal = (signal: Signal) => void told.push({ at: world.now(), signal });
  const call = { principal: '_', server: 'alpha', name: 'dele\u0007te', onSignal } as Subject['call'];
  const withdraw = asks.wait(QUESTIONS[0] as Question, { call, latestDeadline: 600_000 }, member, () => {});
  await world.pass(52_000);
  const [first, ...again] = told;
  const [ask] = asks.inbox.list();
  expect(first?.signal).toEqual({
    ...{ type: 'ask', id: ask?.id, kind: 'approval', expiresAt: ask?.expiresAt },
    message: `tool dele\ufffdte of alpha waits for approval: troupe answer ${ask?.id.slice(0, 8)}`,
  });
  expect(first?.at).toBeLessThan(1_000);
  expect(again.map(({ at }) => at - Number(first?.at))).toEqual([15_000, 30_000, 45_000]);
  withdraw();
  await world.pass(60_000);
  expect(told).toHaveLength(4);
  asks.close();
});

const ROUNDS = 40;

it(`of all answers one stands, and every question ends once, whatever the order: ${ROUNDS} seeds`, async () => {
  const first = Number(process.env.TROUPE_SEED ?? 1);
  for (let seed = first; seed < first + ROUNDS; seed++)
    await simulate(seed).catch((error) => {
      throw new Error(`seed ${seed} (TROUPE_SEED=${seed} replays it)`, { cause: error });
    });
});
