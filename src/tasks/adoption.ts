// Tasks that nobody runs any more, because their daemon was killed, stopped or has let go of them: they are taken over, and go
// on as far as that can be done without doing anything twice.

import type { Outcome } from '../calls/call.ts';
import type { TaskRow } from '../store/rows.ts';
import { failpoint } from '../telemetry/failpoints.ts';
import type { Live } from './live.ts';
import type { Lives } from './lives.ts';
import type { Reruns } from './reruns.ts';
import type { Rows } from './rows.ts';

export type AdoptionOptions = {
  readonly rows: Rows;
  readonly lives: Lives;
  /** Whether it is run, or about to be run, here. */
  readonly isKnown: (id: string) => boolean;
  /** How many those are. */
  readonly known: () => number;
  readonly begin: (row: TaskRow, params: Buffer) => Live;
  readonly reruns: Reruns;
  readonly onAdopted: (row: TaskRow) => void;
  readonly onTrouble: (error: unknown) => void;
};

const LOOK_MS = 500;

export function startAdoption(options: AdoptionOptions) {
  const { rows, lives, isKnown, begin, onTrouble } = options;
  let looking: Promise<void> | undefined;
  const timer = setInterval(look, LOOK_MS).unref();
  look();

  function look(): void {
    looking ??= adopt()
      .catch(onTrouble)
      .finally(() => {
        looking = undefined;
      });
  }

  async function adopt(): Promise<void> {
    if (await lives.adopt(options.reruns.servers())) failpoint('task.adopted');
    else if (rows.countOwn() <= options.known()) return; // else one of ours is run by nobody
    for (const row of rows.own()) if (!isKnown(row.id)) attempt(row);
  }

  /** What goes wrong with one is not the others' business. */
  function attempt(row: TaskRow): void {
    try {
      resume(row);
    } catch (error) {
      onTrouble(error);
    }
  }

  function resume(row: TaskRow): void {
    const params = rows.paramsOf(row.id);
    const live = begin(row, params ?? Buffer.from('{}'));
    options.onAdopted(row);
    const canFollow = row.upstream !== null && options.reruns.isRemote(row.server);
    if (params && (row.phase === 'queued' || canFollow)) live.run();
    else live.interrupted(params ? interruption(row) : unreadable(row));
  }

  return {
    look,
    async stop(): Promise<void> {
      clearInterval(timer);
      await looking;
    },
  };
}

/** It had been sent: what became of it nobody can tell. */
function interruption({ server, tool }: TaskRow): Outcome {
  const message = `interrupted, outcome unknown: troupe was killed while ${tool} of ${server} ran`;
  return { ok: false, failure: { code: 'lost', delivery: 'outcome unknown', message, server } };
}

function unreadable({ server, tool, phase }: TaskRow): Outcome {
  const delivery = phase === 'queued' ? 'not sent' : 'outcome unknown';
  const message = `interrupted, ${delivery}: what ${tool} of ${server} was to be called with is sealed with another key`;
  return { ok: false, failure: { code: 'internal', delivery, message, server } };
}
