// What tasks must know of servers: whether one takes a call now, whether what it runs outlives a daemon, and what may be called
// again.

import type { Call } from '../calls/call.ts';
import { type Gate, outcomes } from '../calls/outcomes.ts';
import { glob } from '../catalog/patterns.ts';
import { TroupeError } from '../protocol/failures.ts';
import type { Fleet } from '../servers/fleet.ts';
import { isPassing } from '../servers/states.ts';
import type { TaskRow } from '../store/rows.ts';
import type { ServerRules } from './endings.ts';

export type TaskFleet = Pick<Fleet, 'submit' | 'cancel' | 'isClear' | 'refusalOf' | 'member' | 'members' | 'memberFor'>;

/** Those that take calls, or will by themselves. */
export const availableServers = (fleet: TaskFleet): string[] =>
  fleet.members().flatMap(({ server, lane }) => (isHopeless(lane.gate) ? [] : [server]));

export const serverRules = (fleet: TaskFleet): ServerRules => ({
  mayRerun({ server, tool, key }: TaskRow): boolean {
    const rule = fleet.member(server)?.config.settings.rerun.find(({ tools }) => glob(tools)(tool));
    return rule?.when === 'always' || (rule?.when === 'keyed' && key !== null);
  },
  isRemote: (server: string): boolean => fleet.member(server)?.config.transport !== 'stdio',
});

/** Throws what a plain caller would be told at once; else whether it would be sent at once, behind those ahead of it. */
export function canBeSent(fleet: TaskFleet, call: Call, ahead: number): boolean {
  const { server } = call;
  const member = fleet.memberFor(server, call.principal, call.holder);
  if (!member) throw new TroupeError('unknownServer', `there is no server ${server}; troupe ps lists them`);
  const { gate } = member.lane;
  const refused = isHopeless(gate) ? outcomes(server).refusal(gate) : undefined;
  if (refused && !refused.ok) throw new TroupeError(refused.failure.code, refused.failure.message);
  const refusal = fleet.refusalOf(call, member);
  if (refusal) throw new TroupeError(refusal.code, refusal.message);
  return fleet.isClear(call, ahead);
}

const isHopeless = ({ mode, state }: Gate): boolean => mode === 'refuse' && !isPassing(state);
