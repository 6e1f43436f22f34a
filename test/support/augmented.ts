// Servers that ask their questions as tasks: processes of the server of an askStage, each with a real session of its own whose
// every word is kept.

import { ServerSession } from '../../src/servers/connection/session.ts';
import type { Member } from '../../src/servers/member.ts';
import { askStage, FORM, type StageOptions } from './asks.ts';
import { eventually } from './eventually.ts';

type Facts = NonNullable<Member['facts']>;
export type Peer = ReturnType<typeof peerOf>;
export type AugmentedStage = Awaited<ReturnType<typeof augmentedStage>>;

export async function augmentedStage(options: StageOptions = {}) {
  const s = await askStage(options);
  return { ...s, ...peerOf(s), peer: (more: Partial<Member> = {}) => peerOf(s, more) };
}

/** One process, and what is said to it. */
function peerOf(s: Awaited<ReturnType<typeof askStage>>, more: Partial<Member> = {}) {
  const facts = { era: '2025-11-25' } as Facts;
  const config = { ...s.member.config, transport: 'http' } as Member['config'];
  const member: Member = { ...s.member, config, facts, ...more };
  const lines: string[] = [];
  const said: any[] = [];
  const nothing = () => {};
  const hear = (frame: Buffer) => {
    lines.push(`${frame}`);
    said.push(JSON.parse(`${frame}`));
  };
  const session = new ServerSession({
    lane: member.lane,
    server: member.server,
    send: hear,
    openMs: 1_000,
    maxSendBytes: () => 1_000_000,
    reply: hear,
    onNegotiated: nothing,
    onReady: nothing,
    onRefused: nothing,
    onDropped: nothing,
    onLateProgress: nothing,
    onNotice: nothing,
    onAsk: (question) => s.asks.take(member, question),
  });
  const say = (message: object) => session.receive(Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message })));
  const answerTo = (id: string) => eventually(() => said.find((each) => each.id === id) ?? false, 15_000);
  let asked = 0;
  const ask = (method: string, params: object = {}) => {
    const id = `t${++asked}`;
    say({ id, method, params });
    return answerTo(id);
  };
  return {
    member,
    session,
    lines,
    said,
    say,
    ask,
    answerTo,
    /** The task that a question is. */
    async begin(params: object = FORM, task: object = {}, method = 'elicitation/create') {
      const { result, error } = await ask(method, { ...params, task });
      if (error) throw new Error(JSON.stringify(error));
      return result.task;
    },
    async get(taskId: string) {
      const { result, error } = await ask('tasks/get', { taskId });
      return result ?? error;
    },
    /** The statuses that it was told of. */
    told: (taskId: string): string[] =>
      said
        .filter(({ method, params }) => method === 'notifications/tasks/status' && params.taskId === taskId)
        .map(({ params }) => params.status),
  };
}
