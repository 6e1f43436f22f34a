// One daemon for all client scenarios: servers of the suite come and go in its configuration, several at a time.

import { once } from 'node:events';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { startTroupe } from './troupe.mjs';
import { definitionOf, visit } from './visit.mjs';

/** Before the suite gives up: what went wrong is better told by us. */
const PATIENCE_MS = 50_000;

/** `address` takes a scenario as JSON and answers 200 once it was played, or 500 with what went wrong. */
export async function startClientStage() {
  const troupe = await startTroupe({}, { asks: { rules: [{ kind: 'elicitation', answer: 'defaults' }] } });
  const servers = {};
  let count = 0;
  let turn = Promise.resolve();
  const configured = () => {
    turn = turn.then(() => troupe.configure(servers)); // one writer at a time
    return turn;
  };

  async function play({ url, scenario, context }) {
    const name = `suite${++count}`;
    servers[name] = definitionOf(url, scenario, context);
    try {
      await configured();
      await Promise.race([visit(troupe, name, scenario), late()]);
    } catch (error) {
      throw new Error(`${error.message}\n${(await troupe.cli('logs', name, '-n', '20')).stdout}`);
    } finally {
      delete servers[name];
      await configured();
    }
  }

  const listener = createServer(async (request, response) => {
    try {
      await play(JSON.parse(await text(request)));
      response.end();
    } catch (error) {
      response.writeHead(500).end(error.message);
    }
  }).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return {
    address: `http://127.0.0.1:${listener.address().port}`,
    async close() {
      listener.close();
      await troupe.close();
    },
  };
}

async function late() {
  await sleep(PATIENCE_MS, undefined, { ref: false });
  throw new Error(`it is not done after ${PATIENCE_MS} ms`);
}
