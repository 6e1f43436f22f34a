// The links to servers: what a process, an address and a WebSocket may say. Callers keep requests open, so that some of it is an answer.

import { setTimeout as pause } from 'node:timers/promises';
import { askControl } from '../../support/control.ts';
import { type HttpAnswer, httpAnswers } from '../arbitraries/http.ts';
import { messages, variantOf } from '../arbitraries/messages.ts';
import type { House } from '../house.ts';
import { within } from '../puppets/puppet.ts';
import type { Stage, Target } from '../target.ts';

const CALLERS = 8;

/** Calls the server without a pause; how they end does not matter. */
function callers({ d }: House, server: string) {
  const over = new AbortController();
  const working = Array.from({ length: CALLERS }, async () => {
    while (!over.signal.aborted) {
      await d.request(`troupe.call.${server}.anything`, {}, { timeout: 5_000 }).catch(() => {});
      await pause(2);
    }
  });
  return async (): Promise<void> => {
    over.abort();
    await Promise.all(working);
  };
}

function puppetStage<Input>(
  house: House,
  server: string,
  batch: number,
  say: (inputs: readonly Input[]) => Promise<void>,
): Stage<Input> {
  const stop = callers(house, server);
  return {
    async feed(inputs) {
      for (let at = 0; at < inputs.length; at += batch) await say(inputs.slice(at, at + batch));
    },
    [Symbol.asyncDispose]: stop,
  };
}

export const stdioServer: Target<string> = {
  name: 'stdio-server',
  inputs: messages,
  vary: variantOf,
  batch: 50,
  open: async (house) => puppetStage(house, 'puppet', 50, house.puppets.stdio.say),
};

export const websocketServer: Target<string> = {
  name: 'websocket-server',
  inputs: messages,
  vary: variantOf,
  batch: 20,
  open: async (house) => puppetStage(house, 'wired', 20, house.puppets.websocket.say),
};

export const httpServer: Target<HttpAnswer> = {
  name: 'http-server',
  inputs: httpAnswers,
  vary: (input, other, dice) => ({ ...other, body: variantOf(input.body, other.body, dice) }),
  batch: 20,
  open: async (house) =>
    puppetStage(house, 'far', 20, async (inputs) => {
      const isTaken = house.puppets.http.say(inputs);
      // A server that wants a login, or was given up, asks for nothing until a person comes: that is us.
      while (
        (await within(
          300,
          isTaken.then(() => true),
        )) === undefined
      )
        await askControl(`${house.d.state}/control.sock`, 'restart', { server: 'far' }).catch(() => {});
    }),
};
