// What a Node process really holds: garbage is collected first, through its own inspector. Without that, memory says more
// about when V8 last found time than about who still holds what.

import { setTimeout as wait } from 'node:timers/promises';
import WebSocket from 'ws';
import { anonymousOf } from './proc.mjs';

const OPENS_WITHIN_MS = 10_000;
const MB = 1e6;

/** The process was started with `--inspect-port`: the signal makes it listen there. Memory in MB. */
export async function heldBy(pid, port) {
  process.kill(pid, 'SIGUSR1');
  const socket = new WebSocket(await addressOf(port));
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  let lastId = 0;
  const ask = (method, params = {}) =>
    new Promise((resolve) => {
      const id = ++lastId;
      const onMessage = (data) => {
        const message = JSON.parse(data);
        if (message.id !== id) return;
        socket.off('message', onMessage);
        resolve(message.result);
      };
      socket.on('message', onMessage);
      socket.send(JSON.stringify({ id, method, params }));
    });
  // Twice: what the first one finalizes, the second one frees.
  await ask('HeapProfiler.collectGarbage');
  await ask('HeapProfiler.collectGarbage');
  const { result } = await ask('Runtime.evaluate', {
    expression: '(({ heapUsed, external }) => heapUsed + external)(process.memoryUsage())',
  });
  const held = result.value / MB;
  socket.close();
  return { held, resident: anonymousOf(pid) / MB };
}

async function addressOf(port) {
  const deadline = performance.now() + OPENS_WITHIN_MS;
  for (;;) {
    try {
      const [target] = await (await fetch(`http://127.0.0.1:${port}/json/list`)).json();
      return target.webSocketDebuggerUrl;
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await wait(50);
    }
  }
}
