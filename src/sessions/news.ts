// What servers say unasked on its way to the hosts that it concerns: those whose endpoint shows that server, and whose
// calls go to that very process. Changes of lists are gathered for a moment, because a server that starts has four.

import type { Audience } from '../servers/attribution.ts';
import type { Member } from '../servers/member.ts';
import type { TaskNews } from '../tasks/task.ts';
import type { LocalSession } from './session.ts';

export type SessionNews = ReturnType<typeof createNews>;

const GATHER_MS = 20;

export function createNews(sessions: () => Iterable<LocalSession>, onTrouble: (error: unknown) => void) {
  let timer: NodeJS.Timeout | undefined;

  function tellAll(): void {
    timer = undefined;
    for (const session of sessions()) attempt(() => session.tellChanges());
  }

  /** What goes wrong for one host is not the others' business. */
  function attempt(work: () => void): void {
    try {
      work();
    } catch (error) {
      onTrouble(error);
    }
  }

  return {
    listsChanged(): void {
      timer ??= setTimeout(tellAll, GATHER_MS).unref();
    },
    updated(member: Member, uri: string, params: Buffer): void {
      for (const session of sessions()) attempt(() => session.tellUpdate(member, uri, params));
    },
    log(member: Member, level: string, params: Buffer, audience: Audience): void {
      if (audience.to === 'caller' || audience.to === 'nobody') return;
      for (const session of sessions()) {
        const isMeant = audience.to !== 'session' || audience.session === session.identity.id;
        if (isMeant) attempt(() => session.tellLog(member, level, params));
      }
    },
    task: (session: LocalSession, about: Omit<TaskNews, 'session'>): void => attempt(() => session.tellTask(about)),
    levelsFor: (member: Member) =>
      [...sessions()].flatMap((session) => (session.level && session.isServedBy(member) ? [session.level] : [])),
    close: () => clearTimeout(timer),
  };
}
