// The fixture over Streamable HTTP, with sessions and resumable streams; prints its URL once it listens.
// Usage: node main-http.mjs [port]

import { randomUUID } from 'node:crypto';
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { isInitializeRequest } from '@modelcontextprotocol/sdk/types.js';
import { eventStore } from './events.mjs';
import { conformanceServer } from './server.mjs';

const transports = new Map();
const app = createMcpExpressApp(); // refuses a foreign Host or Origin

app.all('/mcp', async (request, response) => {
  const id = request.headers['mcp-session-id'];
  const isFirst = id === undefined && isInitializeRequest(request.body);
  const transport = isFirst ? await opened() : transports.get(id);
  if (transport) return transport.handleRequest(request, response, request.body);
  const [status, message] = id === undefined ? [400, 'a session id is missing'] : [404, 'there is no such session'];
  response.status(status).json({ jsonrpc: '2.0', id: null, error: { code: -32000, message } });
});

const listener = app.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${listener.address().port}/mcp`);
});

async function opened() {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: eventStore(),
    retryInterval: 500,
    onsessioninitialized: (id) => void transports.set(id, transport),
  });
  transport.onclose = () => transports.delete(transport.sessionId);
  await conformanceServer().connect(transport);
  return transport;
}
