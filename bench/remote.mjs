// Any number of cheap MCP servers in one process, over WebSocket: five hundred processes of Node would take 20 GB. They answer
// as the cheap child does: `echo` gives its arguments' message back.

import { once } from 'node:events';
import { WebSocketServer } from 'ws';

const ECHO = { name: 'echo', description: 'The tool echo.', inputSchema: { type: 'object' } };
const methods = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'bench', version: '1.0.0' },
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools: [ECHO] }),
  'tools/call': ({ arguments: args }) => ({ content: [{ type: 'text', text: args.message ?? '' }] }),
};

const server = new WebSocketServer({
  host: '127.0.0.1',
  port: 0,
  handleProtocols: () => 'mcp',
  perMessageDeflate: false,
});
server.on('connection', (socket) => socket.on('message', (data) => answer(socket, JSON.parse(data))));
await once(server, 'listening');
process.on('disconnect', () => process.exit(0));
process.send({ port: server.address().port });

function answer(socket, { id, method, params = {} }) {
  if (id === undefined) return;
  const result = methods[method]?.(params);
  const said = result ? { result } : { error: { code: -32601, message: `no method ${method}` } };
  socket.send(JSON.stringify({ jsonrpc: '2.0', id, ...said }));
}
