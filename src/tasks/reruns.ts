// What tasks must know of servers: whether one takes a call now, whether what it runs outlives a daemon, and what may be called
// again.

import type { Call } from '../calls/call.ts';
import { glob } from '../catalog/naming.ts';
import { TroupeError } from '../failures.ts';
import type { TaskRow } from '../store/rows.ts';
import { PASSING } from './endings.ts';
import type { Order } from './task.ts';
import type { TasksOptions } from './tasks.ts';

export type Reruns = ReturnType<typeof createReruns>;

export function createReruns(cast: TasksOptions['cast']) {
  return {
    servers: (): string[] => cast.members().map(({ server }) => server),
    isRemote: (server: string): boolean => cast.member(server)?.config.transport !== 'stdio',
    /** Whether a call that was sent, and of which nobody knows what became, may be made once more. */
    mayRerun({ server, tool, key }: TaskRow): boolean {
      const rule = cast.member(server)?.config.settings.rerun.find(({ tools }) => glob(tools)(tool));
      return rule?.when === 'always' || (rule?.when === 'keyed' && key !== null);
    },
    /** Throws what the caller of a plain call would be told at once; else whether it would be sent at once. */
    mustTake({ server, tool, principal, door, session, params }: Order): boolean {
      const call: Call = {
        ...{ requestId: '', server, method: 'tools/call', name: tool, params, principal, door },
        ...{ settle: () => {}, ...(session !== undefined && { holder: session }) },
      };
      const member = cast.memberFor(server, principal, session);
      if (!member) throw new TroupeError('unknownServer', `there is no server ${server}; troupe ps lists them`);
      const { mode, state, why } = member.lane.gate;
      if (mode === 'refuse' && !PASSING.has(state))
        throw new TroupeError(
          'unavailable',
          `server ${server} is ${state}${why && `: ${why}`}; troupe start ${server}`,
        );
      const refusal = cast.refusalOf(call, member);
      if (refusal) throw new TroupeError(refusal.code, refusal.message);
      return cast.isClear(call);
    },
  };
}
