// The server that the conformance suite wants to meet, on the official SDK: every tool, resource and prompt it asks for.
// It is itself conformant over HTTP, so that whatever fails through troupe is troupe's.

import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { completions, prompts } from './prompts.mjs';
import { read, resources, resourceTemplates } from './resources.mjs';
import { tools } from './tools.mjs';

const capabilities = {
  tools: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  prompts: { listChanged: true },
  logging: {},
  completions: {},
};

/** One server, for one connection. */
export function conformanceServer() {
  const server = new Server({ name: 'conformance-fixture', version: '1.0.0' }, { capabilities });
  serveTools(server);
  serveResources(server);
  servePrompts(server);
  return server;
}

function serveTools(server) {
  const list = Object.entries(tools).map(([name, { run: _, ...rest }]) => ({ name, ...rest }));
  server.setRequestHandler(types.ListToolsRequestSchema, () => ({ tools: list }));
  server.setRequestHandler(types.CallToolRequestSchema, async ({ params: { name, arguments: args = {} } }, extra) => {
    if (!tools[name]) throw new types.McpError(types.ErrorCode.InvalidParams, `no tool ${name}`);
    return tools[name].run(args, extra);
  });
}

function serveResources(server) {
  server.setRequestHandler(types.ListResourcesRequestSchema, () => ({ resources }));
  server.setRequestHandler(types.ListResourceTemplatesRequestSchema, () => ({ resourceTemplates }));
  server.setRequestHandler(types.ReadResourceRequestSchema, ({ params: { uri } }) => {
    const result = read(uri);
    if (!result) throw new types.McpError(-32002, `no resource ${uri}`, { uri });
    return result;
  });
  server.setRequestHandler(types.SubscribeRequestSchema, async ({ params: { uri } }) => {
    await server.sendResourceUpdated({ uri });
    return {};
  });
  server.setRequestHandler(types.UnsubscribeRequestSchema, () => ({}));
}

function servePrompts(server) {
  const list = Object.entries(prompts).map(([name, { contents: _, ...rest }]) => ({ name, ...rest }));
  server.setRequestHandler(types.ListPromptsRequestSchema, () => ({ prompts: list }));
  server.setRequestHandler(types.GetPromptRequestSchema, ({ params: { name, arguments: args = {} } }) => {
    if (!prompts[name]) throw new types.McpError(types.ErrorCode.InvalidParams, `no prompt ${name}`);
    return { messages: prompts[name].contents(args).map((content) => ({ role: 'user', content })) };
  });
  server.setRequestHandler(types.CompleteRequestSchema, ({ params: { argument } }) => {
    const values = completions.filter((each) => each.startsWith(argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  });
}
