// Whose it is what a server asks and tells while it runs tasks: the one whose task it names, or whose result the stream is
// for. Nobody else hears of it, and what the server calls its task is for the server alone.

import { expect, it } from 'vitest';
import type { Ask } from '../../src/calls/call.ts';
import { createAttribution } from '../../src/servers/attribution.ts';
import type { Asked } from '../../src/servers/connection/session.ts';
import type { Member } from '../../src/servers/member.ts';
import { events, said } from '../support/remote.ts';
import { type Board, boardCast, DONE, soon } from '../support/task-board.ts';

const RELATED = 'io.modelcontextprotocol/related-task';
const related = (taskId: string) => ({ [RELATED]: { taskId } });
const form = (message: string, _meta?: object) => ({
  ...{ method: 'elicitation/create', id: message },
  params: { message, requestedSchema: { type: 'object', properties: {} }, ...(_meta && { _meta }) },
});

/** Two callers with a task each, at a server that both share; each question goes where it belongs, or is refused. */
async function two(board: Board = {}) {
  const { settle } = createAttribution();
  const onAsk = (member: Member, { method, params, origin, answer }: Asked) =>
    void settle(member, origin, (found) => {
      const one = found?.isOne && found.requests[0]?.call.onAsk?.({ method, params, answer });
      if (!one) answer({ ok: false, error: Buffer.from('{"code":-1,"message":"nobody"}') });
    });
  const s = await boardCast(board, { settings: { share: 'all' } }, { onAsk });
  const asked: Record<string, string[]> = { ann: [], ben: [] };
  const call = (principal: string) =>
    s.far.request('tools/call', { name: 'do' }, { principal, onAsk: (ask) => answered(principal, ask) });
  function answered(principal: string, { params, answer }: Ask) {
    asked[principal]?.push(params.toString());
    answer({ ok: true, result: Buffer.from('{"action":"accept", "content":{}, "_meta":{"host":1}}') });
    return { withdraw: () => {}, complete: () => {} };
  }
  const ann = call('ann');
  await s.task(0);
  const ben = call('ben');
  await s.task(1);
  await soon(() => expect([s.handle.standing.size, s.sent('tasks/result').length]).toEqual([1, 2]));
  const messages = () => Object.values(asked).map((each) => each.map((params) => JSON.parse(params).message));
  /** What the server was told. */
  const told = (id: string) =>
    soon(() => {
      const reply = s.handle.seen
        .map(({ raw }) => raw && JSON.parse(raw))
        .find((each) => each?.id === id && !each.method);
      if (!reply) throw new Error(`no answer to ${id}`);
      return reply;
    });
  return {
    ...s,
    ...{ ann, ben, asked, messages, told },
    async end() {
      for (const task of s.handle.tasks) task.end(DONE);
      expect([said(await ann.outcome), said(await ben.outcome)]).toEqual(['done', 'done']);
    },
  };
}

it('asks the one whose task is named, on whatever stream, without its name; and the server gets the name back', async () => {
  await using s = await two();
  s.handle.say(form('for ben', { ...related('task-2'), more: 1 }));
  s.handle.say(form('for ann', related('task-1')));
  const [toBen, toAnn] = [await s.told('for ben'), await s.told('for ann')];
  expect(s.messages()).toEqual([['for ann'], ['for ben']]);
  const [ben] = s.asked.ben ?? [];
  expect(JSON.parse(ben ?? '')).toMatchObject({ _meta: { more: 1 } });
  expect(`${s.asked.ann}${s.asked.ben}`).not.toMatch(/related-task|task-\d/);
  expect(toBen.result).toEqual({ action: 'accept', content: {}, _meta: { host: 1, ...related('task-2') } });
  expect(toAnn.result._meta[RELATED]).toEqual({ taskId: 'task-1' });
  await s.end();
});

it('asks the one for whose result the stream is, and goes by the name where the two differ', async () => {
  await using s = await two({
    methods: {
      'tasks/result': async ({ taskId }, _, response, task) => {
        const stream = events(response);
        const say = (message: object) => stream.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
        if (taskId === 'task-2') {
          say(form('on the stream of ben'));
          say(form('for ann by name', related('task-1')));
          say({ method: 'notifications/message', params: { level: 'info', data: 'a line for ben' } });
        }
        const reply: any = await task?.ended;
        return reply.result;
      },
    },
  });
  await s.told('on the stream of ben');
  await s.told('for ann by name');
  expect(s.messages()).toEqual([['for ann by name'], ['on the stream of ben']]);
  await soon(() => expect(s.ben.signals).toEqual([expect.objectContaining({ type: 'log', level: 'info' })]));
  expect(s.ann.signals).toEqual([]);
  await s.end();
});

it('takes a name that it does not know for none, and guesses nothing between two callers', async () => {
  await using s = await two();
  s.handle.say(form('whose?', related('stranger')));
  s.handle.say(form('whose else?', related('x'.repeat(2_000))));
  expect((await s.told('whose else?')).error).toMatchObject({ message: 'nobody' });
  expect(s.messages()).toEqual([[], []]);
  s.handle.tasks[1]?.end(DONE);
  await s.ben.outcome;
  expect((await s.told('whose?')).result._meta).toEqual({ host: 1, ...related('stranger') }); // it can only be hers
  await s.end();
});

it('asks nobody on behalf of a task that is over: it is not the business of who is left', async () => {
  await using s = await two();
  s.handle.tasks[0]?.end(DONE);
  await s.ann.outcome;
  s.handle.say(form('of a dead task', related('task-1')));
  expect((await s.told('of a dead task')).error).toMatchObject({ message: 'nobody' });
  expect(s.messages()).toEqual([[], []]);
  await s.end();
});

it('tells of progress under the token of the call, and of log lines that name the task', async () => {
  await using s = await two();
  const token = (index: number) => JSON.parse(s.handle.of('tools/call')[index]?.raw ?? '').params._meta.progressToken;
  s.handle.say({ method: 'notifications/progress', params: { progressToken: token(1), progress: 3, total: 4 } });
  const data = { level: 'info', data: 'a line', _meta: related('task-2') };
  s.handle.say({ method: 'notifications/message', params: data });
  await soon(() => expect(s.ben.signals).toHaveLength(2));
  expect(s.ben.signals[0]).toEqual({ type: 'progress', progress: 3, total: 4 });
  expect(JSON.parse(String((s.ben.signals[1] as any).params))).toEqual({ level: 'info', data: 'a line' });
  expect(s.ann.signals).toEqual([]);
  await s.end();
});
