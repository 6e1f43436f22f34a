// A host on the official SDK, version 1 or 2, whose person and model answer at once, and which keeps every question.

import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';

export type AnsweringHost = Awaited<ReturnType<typeof answeringHost>>;

/** `person` is who answers there; the roots are its own. */
export async function answeringHost(version: 'v1' | 'v2', url: string, person: string, roots: string[] = []) {
  const questions: any[] = [];
  const handlers: Record<string, (params: any) => object> = {
    'elicitation/create': ({ mode }) =>
      mode === 'url' ? { action: 'accept' } : { action: 'accept', content: { name: person, check: true } },
    'sampling/createMessage': ({ messages }) => ({
      role: 'assistant',
      model: `model of ${person}`,
      stopReason: 'endTurn',
      content: { type: 'text', text: `${person} heard: ${[messages[0].content].flat()[0].text}` },
    }),
    'roots/list': () => ({ roots: roots.map((uri) => ({ uri })) }),
  };
  const schemas: Record<string, any> = {
    'elicitation/create': ElicitRequestSchema,
    'sampling/createMessage': CreateMessageRequestSchema,
    'roots/list': ListRootsRequestSchema,
  };
  const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } };
  const info = { name: person, version: '1' };
  // The two differ in types only, and in how a method is named.
  const client: any = new (version === 'v1' ? ClientV1 : ClientV2)(info, { capabilities });
  for (const [method, handle] of Object.entries(handlers))
    client.setRequestHandler(version === 'v1' ? schemas[method] : method, ({ params }: any) => {
      questions.push({ method, ...params });
      return handle(params);
    });
  const address = new URL(url);
  await client.connect(version === 'v1' ? new StreamableHTTPClientTransport(address) : new TransportV2(address));
  return {
    questions,
    asked: (method: string) => questions.filter((each) => each.method === method),
    call: (name: string, args: object = {}): Promise<any> => client.callTool({ name, arguments: args }),
    changed: (next: string[]) => {
      roots = next;
      return client.sendRootsListChanged();
    },
    [Symbol.asyncDispose]: () => client.close() as Promise<void>,
  };
}
