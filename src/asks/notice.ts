// What is said to whoever waits for the answer to a question: that it waits, for what, and how a person can answer.

import type { Signal } from '../calls/call.ts';
import { withoutControls } from '../telemetry/printable.ts';
import type { AskView } from './ask.ts';

const NAME_CHARACTERS = 128;

/** A name that a caller or a server has made up, as it may stand in a sentence. */
export const shownName = (name: string): string => withoutControls(name).slice(0, NAME_CHARACTERS);

/** `instance` is the name of the daemon that has the question, where it is not the only one. */
export const answerCommand = (id: string, instance: string | undefined): string =>
  `troupe answer ${id.slice(0, 8)}${instance === undefined ? '' : ` --instance ${instance}`}`;

export function noticeOf(
  view: Pick<AskView, 'id' | 'kind' | 'server' | 'tool' | 'expiresAt'>,
  instance?: string,
): Notice {
  const { id, kind, server, tool, expiresAt } = view;
  const command = answerCommand(id, instance);
  const message =
    kind === 'approval'
      ? `tool ${shownName(tool)} of ${server} waits for approval: ${command}`
      : `${server} waits for the answer to a question: ${command}`;
  return { type: 'ask', id, kind, expiresAt, message };
}

type Notice = Extract<Signal, { type: 'ask' }>;
