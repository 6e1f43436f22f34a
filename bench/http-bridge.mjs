// The ceiling over HTTP: node:http → id spliced → one child's stdin → JSON answer. No checks, no streams, no log; a session
// is a number that nobody looks at. Run by fork(); tells its parent port and child when it is ready.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { splitter, writer } from './pipe.mjs';

const HEAD = '{"jsonrpc":"2.0","id":';
const COMMA = 44;

const child = spawn(process.execPath, [fileURLToPath(new URL('child.mjs', import.meta.url))], {
  stdio: ['pipe', 'pipe', 'inherit'],
});
const waiting = new Map();
let lastId = 0;
const write = writer(child.stdin);

child.stdout.on('data', splitter(reply));
const server = createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => forward(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks), response));
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
process.on('disconnect', () => process.exit(0));
process.send({ port: server.address().port, childPid: child.pid });

/** The loader writes `{"jsonrpc":"2.0","id":7,…`; what has no id is a notification. */
function forward(body, response) {
  const end = body.indexOf(COMMA, HEAD.length);
  if (body.latin1Slice(0, HEAD.length) !== HEAD) {
    write(Buffer.concat([body, Buffer.from('\n')]));
    response.writeHead(202).end();
    return;
  }
  const id = ++lastId;
  waiting.set(id, { response, id: body.latin1Slice(HEAD.length, end) });
  write(Buffer.from(`${HEAD}${id}`), body.subarray(end), Buffer.from('\n'));
}

function reply(line) {
  const end = line.indexOf(COMMA, HEAD.length);
  const number = Number(line.latin1Slice(HEAD.length, end));
  const { response, id } = waiting.get(number);
  waiting.delete(number);
  const body = Buffer.concat([Buffer.from(`${HEAD}${id}`), line.subarray(end)]);
  response.writeHead(200, {
    'content-type': 'application/json',
    'content-length': body.length,
    'mcp-session-id': `${number}`,
  });
  response.end(body);
}
