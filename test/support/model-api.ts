// The APIs of two vendors of models, as they are documented: a request that is not in order gets a 400 in the vendor's own
// form. What is answered is up to the test; what was asked is kept for it.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { anthropicProblem, openaiProblem } from './model-shapes.ts';

export type Vendor = 'openai' | 'anthropic';
export type Asked = { readonly path: string; readonly headers: IncomingMessage['headers']; readonly body: any };
/** An object is the body of a 200; a function does as it likes. */
export type Reply = object | ((response: ServerResponse, asked: Asked) => void);
export type ModelApi = Awaited<ReturnType<typeof modelApi>>;

export const KEY = 'sk-proj-4f7bsecretkey0123456789';

export async function modelApi(vendor: Vendor) {
  const asked: Asked[] = [];
  const replies: Reply[] = [];
  const { path, isKey, errorOf, problemOf } = VENDORS[vendor];

  const http = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = JSON.parse(Buffer.concat(chunks).toString());
    const question = { path: request.url ?? '', headers: request.headers, body };
    asked.push(question);
    const send = (status: number, answer: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    if (request.method !== 'POST' || request.url?.split('?')[0] !== path)
      return send(404, errorOf('not_found', 'Not found'));
    if (!isKey(request.headers))
      return send(401, errorOf('authentication_error', `Incorrect API key provided: ${KEY}`));
    const problem = problemOf(body);
    if (problem) return send(400, errorOf('invalid_request_error', problem));
    const reply = replies.shift() ?? saying(vendor, 'Good day.');
    return typeof reply === 'function' ? reply(response, question) : send(200, reply);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const { port } = http.address() as AddressInfo;
  return {
    asked,
    host: `127.0.0.1:${port}`,
    baseUrl: `http://127.0.0.1:${port}${vendor === 'openai' ? '/v1' : ''}`,
    /** The next requests are answered so, in this order. */
    reply: (...next: Reply[]) => void replies.push(...next),
    last: () => asked.at(-1)?.body,
    async [Symbol.asyncDispose]() {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}

export const failing =
  (vendor: Vendor, status: number, message: string, headers: Record<string, string> = {}): Reply =>
  (response) =>
    response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(JSON.stringify(VENDORS[vendor].errorOf('some_error', message)));

const saying = (vendor: Vendor, text: string): object =>
  vendor === 'openai' ? completion({ content: text }) : reply([{ type: 'text', text }]);

export function completion(message: object, choice: object = {}, over: object = {}): object {
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: 'm-1-2026',
    choices: [
      {
        index: 0,
        finish_reason: 'stop',
        logprobs: null,
        ...choice,
        message: { role: 'assistant', refusal: null, ...message },
      },
    ],
    usage: { prompt_tokens: 20, completion_tokens: 10, total_tokens: 30 },
    ...over,
  };
}

export function reply(content: object[], over: object = {}): object {
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm-1-2026',
    content,
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 20, output_tokens: 10 },
    ...over,
  };
}

const VENDORS = {
  openai: {
    path: '/v1/chat/completions',
    problemOf: openaiProblem,
    isKey: ({ authorization }: IncomingMessage['headers']) => authorization === `Bearer ${KEY}`,
    errorOf: (type: string, message: string): object => ({ error: { message, type, param: null, code: null } }),
  },
  anthropic: {
    path: '/v1/messages',
    problemOf: anthropicProblem,
    isKey: (headers: IncomingMessage['headers']) =>
      headers['x-api-key'] === KEY && headers['anthropic-version'] === '2023-06-01',
    errorOf: (type: string, message: string): object => ({
      type: 'error',
      error: { type, message },
      request_id: 'req_1',
    }),
  },
};
