// The ceiling with many servers: NATS subscription → id → one WebSocket of SERVERS → reply. No machines, no store, no log, no
// checks. Run by fork() with NATS_URL and REMOTE_URL; tells its parent when it is ready, and ends when that hangs up.

import { connect } from 'nats';
import { WebSocket } from 'ws';
import { addressOf } from './nats-socket.mjs';

const HEAD = '{"jsonrpc":"2.0","id":';
const RESULT = Buffer.from('"result":');

const { host, port, ...credentials } = addressOf(process.env.NATS_URL);
const nats = await connect({ servers: `${host}:${port}`, ...credentials, noAsyncTraces: true });
const waiting = new Map();
let lastId = 0;
for (let number = 0; number < Number(process.env.SERVERS); number += 1) await open(`s${number}`);
await nats.flush();
process.on('disconnect', () => process.exit(0));
process.send({ ready: true });

async function open(name) {
  const socket = new WebSocket(process.env.REMOTE_URL, ['mcp'], { perMessageDeflate: false });
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  socket.on('message', reply);
  const callback = (_error, message) => {
    const id = ++lastId;
    waiting.set(id, message);
    const head = Buffer.from(`${HEAD}${id},"method":"tools/call","params":{"name":"echo","arguments":`);
    socket.send(Buffer.concat([head, message.data, Buffer.from('}}')]), { binary: false });
  };
  nats.subscribe(`bridge.call.${name}.echo`, { callback });
}

function reply(line) {
  const id = Number.parseInt(line.latin1Slice(HEAD.length, HEAD.length + 16), 10);
  const message = waiting.get(id);
  waiting.delete(id);
  message?.respond(line.subarray(line.indexOf(RESULT, HEAD.length) + RESULT.length, line.length - 1));
}
