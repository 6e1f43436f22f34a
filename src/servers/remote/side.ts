// The POSTs that nobody waits for: notifications and answers to what the server asked. They are few and short-lived; a
// server that does not take them is noticed by their number.

import type { LinkEvents } from '../link.ts';
import type { Client } from './client.ts';
import { collect } from './exchange.ts';
import { type Refusal, refusalIn } from './failures.ts';

export type SideOptions = {
  readonly client: Client;
  readonly events: LinkEvents;
  readonly onDebug: (text: string) => void;
};
export type SidePost = {
  readonly frame: Buffer;
  readonly headers: Record<string, string>;
  readonly path?: string;
  readonly onRefused?: (status: number, refusal: Refusal | undefined) => void;
  readonly onDone?: () => void;
};
export type SidePosts = ReturnType<typeof createSidePosts>;

const MAX_POSTS = 1_000;
const MAX_BYTES = 16 * 1024 * 1024;
const MAX_BODY_BYTES = 64 * 1024;
const HEAD_MS = 30_000;

export function createSidePosts({ client, events, onDebug }: SideOptions) {
  let posts = 0;
  let bytes = 0;

  function send({ frame, headers, path, onRefused, onDone }: SidePost): void {
    posts++;
    bytes += frame.length;
    let isDone = false;
    const done = (): void => {
      if (isDone) return;
      isDone = true;
      posts--;
      bytes -= frame.length;
      onDone?.();
    };
    const sent = client.send({
      ...{ method: 'POST', headers: { ...headers, ...CONTENT }, headMs: HEAD_MS, ...(path !== undefined && { path }) },
      body: frame.subarray(0, -1),
      onHead: ({ status }) =>
        collect(
          MAX_BODY_BYTES,
          () => sent.abort(),
          (body) => {
            if (status >= 300) onDebug(`it answered a message that needs no answer with HTTP ${status}`);
            if (status >= 300) onRefused?.(status, refusalIn(body));
            done();
          },
        ),
      onTrouble({ kind, why }) {
        onDebug(`a message that needs no answer was lost: ${why}`);
        if (kind === 'unauthorized') events.onUnauthorized(why);
        if (kind === 'unsent') events.onUnreachable();
        done();
      },
    });
  }

  return { send, hasRoom: () => posts < MAX_POSTS && bytes < MAX_BYTES };
}

const CONTENT = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
