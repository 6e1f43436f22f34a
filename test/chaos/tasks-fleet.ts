// The daemons of the chaos of tasks, all on one state directory. Whichever dies, by a round or at a failpoint of its own, is
// started again; some of them with the next failpoint in their environment, as the seed says.

import { type Beside, beside } from '../support/beside.ts';
import type { Daemon } from '../support/daemon.ts';
import { freePort } from '../support/nats.ts';
import { type Random, random } from './random.ts';

export type Member = { readonly daemon: Beside; readonly url: string; isReady: boolean; failpoint: string | undefined };
export type Fleet = Awaited<ReturnType<typeof startCast>>;

/** How often each may be passed before it is the last time: some moments are rarer than others. */
const FAILPOINTS: [name: string, most: number][] = [
  ['task.created', 20],
  ['task.acknowledged', 20],
  ['task.reserved', 20],
  ['task.sent', 20],
  ['task.answered', 20],
  ['task.committed', 20],
  ['task.cancelled', 4],
  ['task.adopted', 1],
];

type Options = {
  readonly names: readonly string[];
  readonly seed: number;
  /** A daemon has died by itself, at this point. */
  readonly onFailpoint: (name: string) => void;
};

export async function startCast(d: Daemon, { names, seed, onFailpoint }: Options) {
  let isQuiet = false;
  let isOver = false;
  const faults: string[] = [];
  const members = await Promise.all(names.map(enter));
  const lives = members.map((member, index) =>
    keepAlive(member, random(seed + index)).catch((error) => void faults.push(String(error))),
  );

  async function enter(name: string): Promise<Member> {
    const port = await freePort();
    const daemon = await beside(d, name, { http: `127.0.0.1:${port}` });
    return { daemon, url: `http://127.0.0.1:${port}/mcp`, isReady: true, failpoint: undefined };
  }

  async function keepAlive(member: Member, dice: Random): Promise<void> {
    for (;;) {
      const words = await member.daemon.ended();
      member.isReady = false;
      if (isOver) return;
      if (words !== undefined) faults.push(words);
      if (member.failpoint) onFailpoint(member.failpoint);
      member.failpoint = !isQuiet && dice.between(0, 1) === 0 ? pointOf(dice) : undefined;
      member.isReady = await member.daemon.start(member.failpoint ? { TROUPE_FAILPOINT: member.failpoint } : {});
    }
  }

  return {
    members,
    /** The last words of daemons that ended without being killed. */
    faults,
    /** Dies now, wherever it is; who was to die at a failpoint does not. */
    async kill(member: Member): Promise<void> {
      member.failpoint = undefined;
      member.isReady = false;
      await member.daemon.kill();
    },
    /** No failpoint is armed any more in any that is started from here on. */
    quiet(): void {
      isQuiet = true;
    },
    /** Nobody is started again. */
    close(): void {
      isOver = true;
    },
    async [Symbol.asyncDispose]() {
      isOver = true;
      await Promise.all(members.map(({ daemon }) => daemon[Symbol.asyncDispose]()));
      await Promise.all(lives);
    },
  };
}

function pointOf(dice: Random): string {
  const [name, most] = dice.oneOf(FAILPOINTS);
  return `${name}:${dice.between(1, most)}`;
}
