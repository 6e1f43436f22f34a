// A daemon with an inbox, played from a script on the control socket, and `troupe` at a real terminal in front of it.

import { type Asked, type Reply, workplace } from './cli.ts';
import { MAIN } from './daemon.ts';
import { type Terminal, terminal } from './terminal.ts';

export const ID = 'ab12cd34-0000-4000-8000-000000000000';

export const ask = (more: object) => ({
  id: ID,
  kind: 'elicitation',
  mode: 'form',
  stage: 'answer',
  server: 'everything',
  tool: 'greet',
  principal: 'alice',
  message: 'Who are\nyou?',
  openedAt: Date.now(),
  expiresAt: Date.now() + 60_000,
  ...more,
});

/** What the daemon says to an answer. */
export const outcome = (name: string): Reply => ({ result: JSON.stringify({ id: ID, outcome: name }) });
export const refusal = (code: string, message: string): Reply => ({
  error: { code: -32000, message, data: { troupe: { code } } },
});

/** A reply that is promised comes after whatever the inbox says meanwhile. */
export async function asking(
  asks: object[],
  onAnswer: (params: any) => Reply | Promise<Reply> = () => outcome('accepted'),
) {
  const place = workplace();
  const screens: Terminal[] = [];
  const waiting = new Set<() => void>();
  const sockets = new Set<{ destroy(): unknown }>();
  const said: any[] = [];
  let version = 1;
  const state = () => `{"version":${version},"asks":${JSON.stringify(asks)}}`;
  await place.control(({ id, method, params }: Asked, socket): Reply => {
    sockets.add(socket);
    if (method === 'inbox' && params.since !== version) return { result: state() };
    if (method === 'inbox') {
      waiting.add(() => socket.write(`{"jsonrpc":"2.0","id":${id},"result":${state()}}\n`));
      return undefined;
    }
    said.push(params);
    const reply = onAnswer(params);
    if (!(reply instanceof Promise)) return reply;
    void reply.then((late) => socket.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...parsed(late) })}\n`));
    return undefined;
  });
  return {
    /** Every answer that came. */
    said,
    directory: place.directory,
    change(next: object[]) {
      asks = next;
      version++;
      for (const each of waiting) each();
      waiting.clear();
    },
    /** As a daemon that is killed. */
    hangUp() {
      for (const each of sockets) each.destroy();
    },
    troupe(words: readonly string[], env: NodeJS.ProcessEnv = {}): Terminal {
      const { directory } = place;
      const own = {
        PATH: process.env.PATH,
        HOME: directory,
        TMPDIR: directory,
        TROUPE_STATE: directory,
        NO_COLOR: '1',
      };
      const opened = terminal([process.execPath, MAIN, ...words], { env: { ...own, ...env } });
      screens.push(opened);
      return opened;
    },
    async [Symbol.asyncDispose]() {
      for (const each of screens) await each[Symbol.asyncDispose]();
      await place[Symbol.asyncDispose]();
    },
  };
}

const parsed = (reply: Reply): object =>
  reply && 'result' in reply ? { result: JSON.parse(reply.result) } : { error: reply?.error };
