// The drawings in machines/README.md are what the machines say today, and leave no state out.

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { AnyStateMachine, AnyStateNode } from 'xstate';
import { approvalMachine } from '../../machines/approval.ts';
import { brokerMachine } from '../../machines/broker.ts';
import { busMachine } from '../../machines/bus.ts';
import { daemonMachine } from '../../machines/daemon.ts';
import { elicitationMachine } from '../../machines/elicitation.ts';
import { fleetMachine } from '../../machines/fleet.ts';
import { questionTaskMachine } from '../../machines/question-task.ts';
import { requestMachine } from '../../machines/request.ts';
import { rootsMachine } from '../../machines/roots.ts';
import { samplingMachine } from '../../machines/sampling.ts';
import { serverMachine } from '../../machines/server.ts';
import { sessionMachine } from '../../machines/session.ts';
import { diagrams } from '../../src/diagrams.ts';

const machines = {
  approvalMachine,
  brokerMachine,
  busMachine,
  daemonMachine,
  elicitationMachine,
  fleetMachine,
  questionTaskMachine,
  requestMachine,
  rootsMachine,
  samplingMachine,
  serverMachine,
  sessionMachine,
};
const drawn = diagrams();
const sectionOf = ({ id }: AnyStateMachine) =>
  drawn.split('\n## ').find((section) => section.startsWith(`${id}\n`)) ?? '';
const within = (node: AnyStateNode): AnyStateNode[] =>
  Object.values(node.states).flatMap((child) => [child, ...within(child)]);

it('machines/README.md is not stale (else: npm run diagrams)', () => {
  expect(readFileSync(new URL('../../machines/README.md', import.meta.url), 'utf8')).toBe(drawn);
});

it.each(Object.values(machines))('draws every state of $id, once, and every event it knows', (machine) => {
  const section = sectionOf(machine);
  for (const { path, key } of within(machine.root))
    expect(
      section.split('\n').filter((line) => line.trim().startsWith(`state "${key}" as ${path.join('_')}`)),
    ).toHaveLength(1);
  for (const event of machine.events.filter((type: string) => !type.startsWith('xstate.')))
    expect(section).toMatch(new RegExp(`[ \`]${event}\\b`));
});

it('never draws an arrow between a state and one inside it, which mermaid cannot lay out', () => {
  for (const [, from = '', to = ''] of drawn.matchAll(/^ *(\w+) --> (\w+)/gm)) {
    expect(to.startsWith(`${from}_`)).toBe(false);
    expect(from.startsWith(`${to}_`)).toBe(false);
  }
});

it('says guards, timers, dying ports, first and last states, and what holds everywhere', () => {
  const lines = drawn.split('\n').map((line) => line.trim());
  for (const line of [
    '[*] --> up_opening',
    'gone --> [*]',
    'down --> waiting : [mayRestart]',
    'down --> failed : [otherwise]',
    'closed --> asleep : [headsFor asleep]',
    'up --> down : connection.closed, connection fails',
    'locating --> up : locate done [isOurs]',
    'waiting --> locating : start, after backoff',
    'starting_store --> starting_bus : openStore done',
    'linked_online --> linked_connecting : address [isNews]',
    'sent --> sent : progress / extend, relay',
    '- `abort → stopped`',
    '- `any actor fails / revive`',
  ])
    expect(lines).toContain(line);
  // What an inner state forbids is not drawn.
  expect(drawn).not.toContain('linked_draining --> linked_connecting');
});
