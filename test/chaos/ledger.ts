// The books of a chaos run: every call that was made, every answer that came, and what the servers say they executed.
// Whatever died, the books must balance.

import { expect } from 'vitest';

/** What an answer says of the call's fate; `nobody` is the broker's word that no daemon listens. */
export type Fate = 'answered' | 'not sent' | 'outcome unknown' | 'failed' | 'nobody';

export type Entry = {
  readonly id: string;
  readonly door: string;
  readonly answers: Fate[];
  /** The daemon or the connection died under it: it may stay without an answer, and never gets two. */
  isExcused: boolean;
  onAnswer: () => void;
};

export type Ledger = ReturnType<typeof createLedger>;

export function createLedger() {
  const entries = new Map<string, Entry>();
  const cutDoors = new Set<string>();
  let sequence = 0;

  return {
    entries,
    get sent() {
      return sequence;
    },
    open(door: string): Entry {
      const id = `call-${++sequence}`;
      const entry: Entry = { id, door, answers: [], isExcused: cutDoors.has(door), onAnswer: () => {} };
      entries.set(id, entry);
      return entry;
    },
    answered(id: string, fate: Fate): void {
      const entry = entries.get(id);
      entry?.answers.push(fate);
      entry?.onAnswer();
    },
    /** From here until it is mended, calls at this door may be lost; so may those that are still open. */
    cut(door: string): void {
      cutDoors.add(door);
      for (const entry of entries.values()) {
        if (entry.door !== door || entry.answers.length > 0) continue;
        entry.isExcused = true;
        entry.onAnswer();
      }
    },
    mended: (door: string): void => void cutDoors.delete(door),
    waiting: () => [...entries.values()].filter((entry) => entry.answers.length === 0 && !entry.isExcused),

    /** `executed` are the ids as the servers noted them, one for each execution. */
    balance(executed: readonly string[]): Record<string, number> {
      const executions = new Map<string, number>();
      for (const id of executed) executions.set(id, (executions.get(id) ?? 0) + 1);
      const summary: Record<string, number> = { calls: entries.size, executed: executed.length };
      const wrong: string[] = [];
      for (const { id, door, answers, isExcused } of entries.values()) {
        const [fate = 'unanswered'] = answers;
        summary[fate] = (summary[fate] ?? 0) + 1;
        const times = executions.get(id) ?? 0;
        const complain = (what: string) => wrong.push(`${id} (${door}): ${what}; ${answers}; executed ${times} times`);
        if (answers.length > 1) complain(`${answers.length} answers`);
        if (answers.length === 0 && !isExcused) complain('no answer, and nothing died that would explain it');
        if (times > 1) complain('executed more than once');
        if (fate === 'answered' && times !== 1) complain('answered, and not executed');
        if ((fate === 'not sent' || fate === 'nobody') && times !== 0) complain('said not to be sent, and executed');
      }
      expect(wrong).toEqual([]);
      return summary;
    },
  };
}
