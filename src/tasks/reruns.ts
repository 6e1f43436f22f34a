// What tasks must know of servers: whether one takes a call now, whether what it runs outlives a daemon, and what may be called
// again.

import type { Call } from '../calls/call.ts';
import { type Gate, outcomes } from '../calls/outcomes.ts';
import { glob } from '../catalog/patterns.ts';
import { TroupeError } from '../protocol/failures.ts';
import type { TaskRow } from '../store/rows.ts';
import { PASSING } from './endings.ts';
import type { Order } from './task.ts';
import type { TasksOptions } from './tasks.ts';

export type Reruns = ReturnType<typeof createReruns>;

export function createReruns(fleet: TasksOptions['fleet']) {
  return {
    /** Those that take calls, or will by themselves. */
    servers: (): string[] => fleet.members().flatMap(({ server, lane }) => (isHopeless(lane.gate) ? [] : [server])),
    isRemote: (server: string): boolean => fleet.member(server)?.config.transport !== 'stdio',
    /** Whether a call that was sent, and of which nobody knows what became, may be made once more. */
    mayRerun({ server, tool, key }: TaskRow): boolean {
      const rule = fleet.member(server)?.config.settings.rerun.find(({ tools }) => glob(tools)(tool));
      return rule?.when === 'always' || (rule?.when === 'keyed' && key !== null);
    },
    /** Throws what a plain caller would be told at once; else whether it would be sent at once, behind those ahead of it. */
    mustTake({ server, tool, principal, door, session, params }: Order, ahead: number): boolean {
      const about = { requestId: '', server, method: 'tools/call', name: tool, params, principal, door };
      const call: Call = Object.assign(about, { settle: () => {}, ...(session !== undefined && { holder: session }) });
      const member = fleet.memberFor(server, principal, session);
      if (!member) throw new TroupeError('unknownServer', `there is no server ${server}; troupe ps lists them`);
      const { gate } = member.lane;
      const refused = isHopeless(gate) ? outcomes(server).refusal(gate) : undefined;
      if (refused && !refused.ok) throw new TroupeError(refused.failure.code, refused.failure.message);
      const refusal = fleet.refusalOf(call, member);
      if (refusal) throw new TroupeError(refusal.code, refusal.message);
      return fleet.isClear(call, ahead);
    },
  };
}

const isHopeless = ({ mode, state }: Gate): boolean => mode === 'refuse' && !PASSING.has(state);
