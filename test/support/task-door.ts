// The door of tasks on NATS with tasks in memory behind it, and a caller that keeps what it is told.

import type { NatsConnection } from 'nats';
import { subjects } from '../../src/bus/subjects.ts';
import type { TaskView } from '../../src/calls/call.ts';
import { createResponder } from '../../src/doors/nats/responder.ts';
import type { OpenAsk } from '../../src/doors/nats/results.ts';
import { serveTasks } from '../../src/doors/nats/tasks.ts';
import type { Tasks } from '../../src/tasks/task.ts';
import { headersOf } from './ask.ts';
import { replyOf } from './daemon.ts';
import { littleTasks } from './little-tasks.ts';
import type { TestServer } from './nats.ts';

type Options = {
  family?: string;
  daemon?: string;
  pageSize?: number;
  guesses?: number;
  keepAliveMs?: number;
  asks?: readonly (OpenAsk & { principal: string })[];
};

export async function taskDoor(nats: TestServer, views: TaskView[], options: Options = {}) {
  const { family = 'f1', daemon = 'host-1', asks = [], ...rest } = options;
  const nc = await nats.connect();
  const little = littleTasks(views, rest);
  const troubles: string[] = [];
  const open = createResponder({
    nc,
    onTrouble: (why) => void troubles.push(String(why)),
    ...(rest.keepAliveMs && { keepAliveMs: rest.keepAliveMs }),
  });
  const inbox = { list: (principal: string) => asks.filter((ask) => ask.principal === principal) };
  serveTasks(open, { subjects: subjects('troupe'), daemon, family, ports: { tasks: little.tasks as Tasks, inbox } });
  await nc.flush();
  const dispose = async () => {
    await open.close();
    await nc.close();
  };
  return Object.assign(little, { open, nc, troubles, [Symbol.asyncDispose]: dispose });
}

export type TaskDoor = Awaited<ReturnType<typeof taskDoor>>;

/** One plain request, and its one reply. */
export const requester =
  (client: () => NatsConnection) =>
  async (subject: string, body = '', wanted: Record<string, string> = {}) =>
    replyOf(await client().request(subject, body, { timeout: 10_000, headers: headersOf(wanted) }));
