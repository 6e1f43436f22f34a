// A server's lane with the permissions that its calls need, a real store and catalog, and somebody to be asked who answers when the test
// says so. The server is whoever reads `written`.

import pino from 'pino';
import type { AskOutcome, Question, Subject } from '../../src/asks/ask.ts';
import { createPermissions, type OpenAsk } from '../../src/asks/waiting/permissions.ts';
import type { Call, Outcome } from '../../src/calls/call.ts';
import { createLane } from '../../src/calls/lane.ts';
import { createRecorder } from '../../src/calls/record.ts';
import type { InFlight } from '../../src/calls/request.ts';
import { createRequests } from '../../src/calls/requests.ts';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { type StdioServer, settingsSchema } from '../../src/config/schema.ts';
import { failureOf } from '../../src/protocol/failures.ts';
import { type Member, newMember } from '../../src/servers/member.ts';
import { refusal } from '../../src/servers/policy.ts';
import { gate, meaningOf, type ServerState } from '../../src/servers/states.ts';
import { Suspects } from '../../src/servers/suspects.ts';
import { type AuditRow, openStore } from '../../src/store/store.ts';
import { realWorld } from '../../src/world/world.ts';
import { scratch } from './scratch.ts';

export type Opened = {
  readonly question: Question;
  readonly subject: Subject;
  readonly end: (outcome: AskOutcome, by?: string) => void;
  isWithdrawn: boolean;
};
type Tool = { readonly name: string; readonly annotations?: object; readonly description?: string };

export const tool = (name: string, annotations?: object): Tool => ({ name, ...(annotations && { annotations }) });
export const DELETE = tool('delete', { destructiveHint: true });
export const LOOK = tool('look', { readOnlyHint: true });

export async function waitingRoom(xTroupe: object = { approve: 'destructive' }, path?: string) {
  const dir = path === undefined ? await scratch() : undefined;
  const store = await openStore(path ?? (dir?.path as string));
  const catalog = createCatalog(store);
  const written: { id: number; method: string; params: any }[] = [];
  const cancelled: string[] = [];
  const opened: Opened[] = [];
  const outcomes = new Map<string, Outcome[]>();
  const woken: string[] = [];
  const world = { openAsk: openAndWait as OpenAsk, isThere: true, memberFor: (): Member | undefined => member };

  function openAndWait(...[question, subject, , onEnded]: Parameters<OpenAsk>): () => void {
    let isOver = false;
    const end = (outcome: AskOutcome, by = ''): void => {
      if (isOver) return;
      isOver = true;
      onEnded(outcome, by, 'troupe answer 0123abcd');
    };
    const ask: Opened = { question, subject, end, isWithdrawn: false };
    opened.push(ask);
    return () => {
      ask.isWithdrawn ||= !isOver;
      end('withdrawn');
    };
  }

  const requests = createRequests({
    driver: 'table',
    world: realWorld,
    onCrash: (error) => {
      throw error;
    },
  });
  const permissions = createPermissions({
    catalog,
    store,
    world: realWorld,
    openAsk: (...about) => world.openAsk(...about),
    noteVisits: () => {},
    wake: ({ name }) => woken.push(name),
  });
  const write = createRecorder(store, 'test', (text) => text);
  function record(request: InFlight, outcome: Outcome): void {
    member.calls++;
    if (!outcome.ok) member.errors++;
    write(request, outcome, member.logger);
  }

  /** As the fleet does: the process that there is now, or for a call that was sent back the same one. */
  function place(request: InFlight, how: 'here' | 'anew' | 'back'): void {
    try {
      const found = how === 'here' || (how === 'back' && world.isThere) ? member : world.memberFor();
      if (found) return found.lane.admit(request);
      request.why = 'it was removed';
      requests.drive(request, 'gone');
    } catch (error) {
      request.refusal = failureOf(error, () => {});
      requests.drive(request, 'refuse');
    }
  }
  const settings = settingsSchema.parse(xTroupe);
  const config: StdioServer = { transport: 'stdio', name: 'alpha', command: 'none', args: [], env: {}, settings };
  const lane = createLane({
    server: 'alpha',
    settings,
    requests,
    refusalOf: (call) => refusal(member, catalog, call),
    permits: {
      needOf: (call) => permissions.needOf(member, call),
      awaitList: (request, tell) => permissions.awaitList(member, request, tell),
      askApproval: (request, tell) => permissions.askApproval(member, request, tell),
      wantsVisits: permissions.wantsVisits,
      askVisits: (request, tell) => permissions.askVisits(member, request, tell),
    },
    place,
    onSettled(request, outcome, isRecorded) {
      request.call.settle(outcome);
      if (!isRecorded) record(request, outcome);
    },
    onAttempt: record,
    onWanted: () => {},
  });
  const logger = pino({ level: 'silent' });
  const suspects = new Suspects(realWorld);
  const member: Member = newMember({ name: 'alpha', config, lane, logger, suspects, onBehalfOf: undefined });
  lane.attach({
    write: (frame) => written.push(JSON.parse(frame.toString())),
    cancel: (id, why) => cancelled.push(`${id}: ${why}`),
    hasRoom: () => true,
  });
  /** As the fleet shows it: the state, then the gate, then what calls that wait for a list are told. */
  function turn(state: ServerState, { since = Date.now(), why = '', mode = meaningOf(state).calls } = {}): void {
    member.state = state;
    member.since = since;
    if (state !== 'ready') catalog.expire('alpha');
    lane.setGate(gate(state, why, mode));
    permissions.changed(member);
  }
  turn('ready');

  return {
    ...{ catalog, store, lane, member, requests, written, cancelled, opened, woken, world, turn },
    list(...tools: Tool[]): void {
      const entries = tools.map((each) => ({ name: each.name, bytes: Buffer.from(JSON.stringify(each)) }));
      catalog.set('alpha', 'tools', entries);
    },
    /** A call whose id is its tool's name, unless told otherwise. */
    call(name: string, rest: Partial<Call> & { args?: object } = {}): void {
      const { args = { of: name }, requestId = name, ...more } = rest;
      lane.submit({
        ...{
          requestId,
          server: 'alpha',
          method: 'tools/call',
          name,
          principal: '_',
          door: 'nats',
          isCancellable: true,
        },
        params: Buffer.from(JSON.stringify({ name, arguments: args })),
        settle: (outcome) => outcomes.set(requestId, [...(outcomes.get(requestId) ?? []), outcome]),
        ...more,
      });
    },
    answer(at: number, event: 'result' | 'error', body: object): void {
      lane.answer(String(written[at]?.id), event, Buffer.from(JSON.stringify(body)));
    },
    /** How a call ended in a few words; `waits` before that, and more than one outcome is an error. */
    fate(requestId: string): string {
      const [outcome, another] = outcomes.get(requestId) ?? [];
      if (another) throw new Error(`${requestId} was settled twice`);
      if (!outcome) return 'waits';
      if (outcome.ok) return `ok ${outcome.result}`;
      const { code, delivery, error, message } = outcome.failure;
      return error ? `${code} ${error}` : `${code}, ${delivery}: ${message}`;
    },
    async audit(): Promise<string[]> {
      await store.flush();
      return store
        .all<AuditRow>('recentAudit', [100, 100])
        .map((row) => `${row.name} ${row.outcome}`)
        .reverse();
    },
    async [Symbol.asyncDispose]() {
      await store.close();
      await dir?.[Symbol.asyncDispose]();
    },
  };
}
export type WaitingRoom = Awaited<ReturnType<typeof waitingRoom>>;
