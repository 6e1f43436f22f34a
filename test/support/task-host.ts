// A host on the SDK's experimental tasks, over whatever transport it is given: it keeps what it hears, and answers forms.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

export const RELATED = 'io.modelcontextprotocol/related-task';
export type TaskHost = Awaited<ReturnType<typeof taskHost>>;
type Options = { readonly ttl?: number; readonly onprogress?: (progress: any) => void };

/** `fill` says what is put into a form; without it the host cannot be asked. */
export async function taskHost(transport: object, fill?: (params: any) => object) {
  const client = new Client(
    { name: 'tasks', version: '1' },
    { capabilities: fill ? { elicitation: {} } : {}, defaultTaskPollInterval: 50 },
  );
  const asked: any[] = [];
  const heard: { readonly method: string; readonly params?: any }[] = [];
  client.fallbackNotificationHandler = async (notification) => void heard.push(notification);
  if (fill)
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
      asked.push(params);
      return { action: 'accept', content: { ...fill(params) } as any };
    });
  await client.connect(transport as any);
  await client.listTools();
  const { tasks } = client.experimental;

  return {
    ...{ client, asked, heard, tasks },
    /** Everything that the SDK's stream says of one call. */
    async stream(name: string, args: object = {}, { ttl, onprogress }: Options = {}): Promise<any[]> {
      const task = ttl === undefined ? {} : { ttl };
      const options = { task, ...(onprogress && { onprogress }), timeout: 50_000 };
      const messages: any[] = [];
      for await (const message of tasks.callToolStream({ name, arguments: { ...args } }, undefined, options))
        messages.push(message);
      return messages;
    },
    /** Only the beginning of it: the task. */
    async create(name: string, args: object = {}, { ttl }: Options = {}): Promise<any> {
      const params = { name, arguments: { ...args } };
      const options = { task: ttl === undefined ? {} : { ttl } };
      for await (const message of tasks.callToolStream(params, undefined, options)) {
        if (message.type === 'taskCreated') return message.task;
        if (message.type === 'error') throw message.error;
      }
    },
    result: (id: string): Promise<any> => tasks.getTaskResult(id, CallToolResultSchema, { timeout: 50_000 }),
    [Symbol.asyncDispose]: () => client.close(),
  };
}
