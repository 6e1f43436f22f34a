// Real clients from the npm registry, as people use them: which version, and how each greets troupe, lists the tools of
// `everything` and has it echo a message; over HTTP, over stdio with `troupe connect`, or over both.
//
// `at` is where a client finds troupe: `url`, and `shim`, the command line of the stdio shim; `home` is the client's own folder
// and `run` starts its command. Each way resolves to how many tools were listed and what came back.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Client as Client2, StreamableHTTPClientTransport as Http2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport as Sse1 } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { toolVersion } from '../support/tools.mjs';
import { membersOf } from './bytes.mjs';
import { freePort, listening } from './stage.mjs';
import { listed, overHttp, overPipes } from './wire.mjs';

export const MESSAGE = 'Grüße \u{1F3AD}';
const ECHO = { name: 'echo', arguments: { message: MESSAGE } };
const INFO = { name: 'field', version: '1.0.0' };

export const clients = [
  {
    name: 'sdk-v1',
    ...{ package: '@modelcontextprotocol/sdk', isOurs: true },
    ways: {
      HTTP: ({ url }) => withSdk(new Client1(INFO), new Http1(new URL(url))),
      'HTTP+SSE': ({ sse }) => withSdk(new Client1(INFO), new Sse1(new URL(sse))),
      stdio: ({ shim }) => withSdk(new Client1(INFO), new Stdio1({ ...shim, stderr: 'ignore' })),
    },
  },
  {
    name: 'sdk-v2',
    ...{ package: '@modelcontextprotocol/client', isOurs: true },
    ways: {
      HTTP: ({ url }) => withSdk(new Client2(INFO), new Http2(new URL(url))),
      stdio: ({ shim }) => withSdk(new Client2(INFO), new Stdio2({ ...shim, stderr: 'ignore' })),
    },
  },
  {
    name: 'inspector',
    ...{ package: '@modelcontextprotocol/inspector', version: toolVersion('inspector'), isNewer: true },
    ways: {
      HTTP: ({ url, run }) => withInspector(run, [url, '--transport', 'http']),
      // It starts a command with next to nothing of its own environment.
      stdio: ({ shim, run }) => withInspector(run, [...variables('-e', shim.env), shim.command, ...shim.args]),
    },
  },
  {
    name: 'mcporter',
    ...{ package: 'mcporter', version: '0.12.3', isNewer: true },
    ways: {
      HTTP: ({ url, run }) => withMcporter(run, ['--http-url', url, '--allow-http']),
      stdio: ({ shim, run }) =>
        withMcporter(run, ['--stdio', shim.command, ...shim.args.flatMap((word) => ['--stdio-arg', word])]),
    },
  },
  {
    name: 'ai-sdk',
    ...{ package: '@ai-sdk/mcp', version: '2.0.97' },
    ways: {
      HTTP: async ({ url, home }) => withAiSdk(home, { type: 'http', url }),
      stdio: async ({ shim, home }) => {
        const { Experimental_StdioMCPTransport: Transport } = await load(home, 'dist/mcp-stdio/index.js');
        return withAiSdk(home, new Transport({ ...shim, stderr: 'ignore' }));
      },
    },
  },
  {
    name: 'mcp-client',
    ...{ package: 'mcp-client', version: '1.13.1' },
    ways: {
      HTTP: ({ url, home }) => withMcpClient(home, { type: 'httpStream', url }),
      stdio: ({ shim, home }) => withMcpClient(home, { type: 'stdio', ...shim }),
    },
  },
  {
    name: 'mcp-remote',
    ...{ package: 'mcp-remote', version: '0.15.1' },
    ways: {
      HTTP: ({ url, launch }) => withWire(overPipes(launch([url, '--allow-http', '--transport', 'http-only']))),
    },
  },
  {
    name: 'supergateway',
    ...{ package: 'supergateway', version: toolVersion('supergateway'), isNewer: true },
    ways: {
      HTTP: ({ url, launch }) => withWire(overPipes(launch(['--streamableHttp', url, '--logLevel', 'none']))),
      stdio: ({ shim, launch }) => {
        const command = [shim.command, ...shim.args].map((word) => JSON.stringify(word)).join(' ');
        const words = ['--stdio', command, '--outputTransport', 'streamableHttp', '--stateful', '--logLevel', 'none'];
        return withBridge((port) => launch([...words, '--port', `${port}`]), '/mcp');
      },
    },
  },
  {
    name: 'mcp-proxy',
    ...{ package: 'mcp-proxy', version: toolVersion('mcp-proxy'), isNewer: true },
    ways: {
      stdio: ({ shim, launch }) =>
        withBridge(
          (port) => launch(['--host', '127.0.0.1', '--port', `${port}`, '--', shim.command, ...shim.args]),
          '/mcp',
        ),
    },
  },
];

async function withSdk(client, transport) {
  await client.connect(transport);
  try {
    const { tools } = await client.listTools();
    const { content } = await client.callTool(ECHO);
    return { tools: tools.length, echoed: content[0].text };
  } finally {
    await client.close();
  }
}

async function withInspector(run, target) {
  const { tools } = JSON.parse(await run(['--cli', ...target, '--method', 'tools/list']));
  const words = ['--method', 'tools/call', '--tool-name', 'echo', '--tool-arg', `message=${MESSAGE}`];
  const { content } = JSON.parse(await run(['--cli', ...target, ...words]));
  return { tools: tools.length, echoed: content[0].text };
}

async function withMcporter(run, target) {
  const { tools } = JSON.parse(await run(['list', ...target, '--name', 'everything', '--json']));
  const words = [
    '--name',
    'everything',
    '--tool',
    'echo',
    '--args',
    JSON.stringify(ECHO.arguments),
    '--output',
    'json',
  ];
  const { content } = JSON.parse(await run(['call', ...target, ...words]));
  return { tools: tools.length, echoed: content[0].text };
}

async function withAiSdk(home, transport) {
  const { createMCPClient } = await load(home, 'dist/index.js');
  const client = await createMCPClient({ transport });
  try {
    const tools = await client.tools();
    const { content } = await tools.echo.execute(ECHO.arguments, { toolCallId: '1', messages: [] });
    return { tools: Object.keys(tools).length, echoed: content[0].text };
  } finally {
    await client.close();
  }
}

async function withMcpClient(home, target) {
  const { MCPClient } = await load(home, 'dist/MCPClient.js');
  const client = new MCPClient(INFO);
  await client.connect(target);
  try {
    const tools = await client.getAllTools();
    const { content } = await client.callTool(ECHO);
    return { tools: tools.length, echoed: content[0].text };
  } finally {
    await client.close();
  }
}

/** A bridge has no voice of its own: we speak through it. */
async function withWire(opening) {
  const connection = await opening;
  try {
    const { items } = await listed(connection, 'tools/list', 'tools');
    const { result } = membersOf(await connection.ask('tools/call', ECHO));
    return { tools: items.length, echoed: JSON.parse(result).content[0].text };
  } finally {
    await connection.close();
  }
}

async function withBridge(launchAt, path) {
  const port = await freePort();
  const { url, end } = await listening(launchAt(port), port, path);
  try {
    return await withWire(overHttp(url));
  } finally {
    await end();
  }
}

const variables = (option, env) =>
  Object.entries(env).flatMap(([name, value]) => (name.startsWith('TROUPE_') ? [option, `${name}=${value}`] : []));

const load = (home, path) => import(pathToFileURL(join(home, path)));
