// An MCP client of the official SDK whose transport is NATS:  node examples/mcp-over-nats.mjs [server]
// NATS_URL comes from `troupe env`. Without a server it sees all of them, their tools named server__tool.

import { Client } from '@modelcontextprotocol/client';
import { connect } from 'nats';
import { NatsClientTransport } from 'troupe/nats-transport';

const { host, username: token } = new URL(process.env.NATS_URL ?? '');
const nats = await connect({ servers: host, token });
const server = process.argv[2];
const client = new Client({ name: 'example', version: '1.0.0' });
await client.connect(new NatsClientTransport(nats, { ...(server && { server }) }));

const { tools } = await client.listTools();
console.log(tools.map(({ name }) => name).join('\n'));
const echo = tools.find(({ name }) => name.endsWith('echo'));
if (echo) {
  const result = await client.callTool({ name: echo.name, arguments: { message: 'hi' } });
  console.log(result.content[0].text);
}

await client.close();
await nats.close();
