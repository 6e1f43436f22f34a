// Draws every machine as a mermaid state diagram, from the definitions that run, so that the drawing cannot be wrong.
// `npm run diagrams` writes machines/README.md; a test fails when that file is not what this one would write.

import { realpathSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate';
import { approvalMachine } from '../machines/approval.ts';
import { brokerMachine } from '../machines/broker.ts';
import { busMachine } from '../machines/bus.ts';
import { daemonMachine } from '../machines/daemon.ts';
import { elicitationMachine } from '../machines/elicitation.ts';
import { fleetMachine } from '../machines/fleet.ts';
import { questionTaskMachine } from '../machines/question-task.ts';
import { requestMachine } from '../machines/request.ts';
import { rootsMachine } from '../machines/roots.ts';
import { samplingMachine } from '../machines/sampling.ts';
import { serverMachine } from '../machines/server.ts';
import { sessionMachine } from '../machines/session.ts';
import { taskMachine } from '../machines/task.ts';

const MACHINES = {
  daemon: [daemonMachine, 'Opens the parts in order, closes them in reverse.'],
  fleet: [fleetMachine, 'Every configured server, each its own actor.'],
  server: [serverMachine, 'The life of one MCP server.'],
  request: [requestMachine, 'One call in flight, answered exactly once.'],
  session: [sessionMachine, 'One host at one endpoint, on the disk and, while it is used, in memory.'],
  elicitation: [elicitationMachine, 'A server wants to know something of a person, or wants an address visited.'],
  sampling: [
    samplingMachine,
    'A server wants a model to speak; a person may look at what goes out and what comes back.',
  ],
  approval: [approvalMachine, 'A call that must not run unseen waits for a word.'],
  'question-task': [questionTaskMachine, 'A question that its server asked as a task.'],
  task: [taskMachine, 'A call whose outcome is kept, as the daemon sees it that owns it; MCP sees a projection.'],
  roots: [rootsMachine, 'What one server has been told of the directories that people work in.'],
  broker: [brokerMachine, 'The NATS server we use, or run.'],
  bus: [busMachine, 'Our connection to NATS.'],
} as const satisfies Record<string, readonly [AnyStateMachine, string]>;

export function diagrams(): string {
  const sections = Object.entries(MACHINES).map(([name, [machine, purpose]]) => section(name, machine, purpose));
  return `${[HEADER, ...sections].join('\n\n')}\n`;
}

const HEADER = `# The machines

<!-- Generated from the machines in this folder. Do not edit: run \`npm run diagrams\`. -->

Generated from the definitions by \`npm run diagrams\`; a test fails when this file is stale.
\`[guard]\` is a condition, \`after x\` is a timer called x, \`x done\` and \`x fails\` are the end of a port or an actor,
\`/ action\` is what an event does that leads nowhere else.`;

function section(name: string, machine: AnyStateMachine, purpose: string): string {
  const chart = ['```mermaid', 'stateDiagram-v2', ...inside(machine.root), ...edges(machine.root), '```'];
  return [
    `## ${name}`,
    `${purpose} Source: [${name}.ts](${name}.ts).`,
    chart.join('\n'),
    ...everywhere(machine.root),
  ].join('\n\n');
}

// ── States ───────────────────────────────────────────────────────────────────

function inside(node: AnyStateNode): string[] {
  const indent = '  '.repeat(node.path.length + 1);
  const between = node.type === 'parallel' ? [`${indent}--`] : [];
  const children = Object.values(node.states).flatMap((child, at) => [
    ...(at > 0 ? between : []),
    ...state(child, indent),
  ]);
  return [...node.initial.target.map((first) => `${indent}[*] --> ${idOf(first)}`), ...children];
}

function state(node: AnyStateNode, indent: string): string[] {
  const title = `${indent}state "${node.key}" as ${idOf(node)}`;
  if (node.type === 'final') return [title, `${indent}${idOf(node)} --> [*]`];
  return isCompound(node) ? [`${title} {`, ...inside(node), `${indent}}`] : [title];
}

// ── Transitions ──────────────────────────────────────────────────────────────

type Edge = { readonly from: AnyStateNode; readonly to: AnyStateNode; readonly label: string };

/** One arrow for each pair of states, with all that leads along it. */
function edges(root: AnyStateNode): string[] {
  const arrows = new Map<string, string[]>();
  for (const { from, to, label } of within(root).flatMap(outgoing)) {
    const arrow = `  ${idOf(from)} --> ${idOf(to)}`;
    arrows.set(arrow, [...(arrows.get(arrow) ?? []), label]);
  }
  return [...arrows].map(([arrow, labels]) => `${arrow} : ${labels.join(', ')}`);
}

function outgoing(node: AnyStateNode): Edge[] {
  return [...[...node.transitions.values()].flat(), ...(node.always ?? [])]
    .filter(hasMeaning)
    .flatMap((transition) => arrowsOf(node, transition));
}

/** Mermaid cannot draw an arrow between a state and one inside it, so such an arrow begins and ends at the innermost. */
function arrowsOf(node: AnyStateNode, transition: AnyTransitionDefinition): Edge[] {
  const label = labelOf(node, transition);
  const [target = node] = transition.target ?? [];
  if (isCompound(node) && leadsNowhere(transition)) return [];
  const isNested = isCompound(node) && within(node).includes(target);
  if (!isNested && target !== node)
    return [{ from: node, to: within(target).includes(node) ? first(target) : target, label }];
  return leaves(node)
    .filter((leaf) => !isOverridden(leaf, node, transition.eventType))
    .map((leaf) => ({ from: leaf, to: transition.target ? first(target) : leaf, label }));
}

/** What holds in all states, and what a state with others inside does without leaving any: too many arrows to draw. */
function everywhere(root: AnyStateNode): string[] {
  const all = listed('In every state', root, [...root.transitions.values()].flat());
  const outer = within(root)
    .filter(isCompound)
    .flatMap((node) =>
      listed(`While \`${node.path.join('.')}\``, node, [...node.transitions.values()].flat().filter(leadsNowhere)),
    );
  return [...all, ...outer];
}

function listed(title: string, node: AnyStateNode, transitions: readonly AnyTransitionDefinition[]): string[] {
  const lines = transitions.filter(hasMeaning).map((transition) => {
    const target = transition.target?.map(({ path }: AnyStateNode) => ` → ${path.join('.')}`).join('') ?? '';
    return `- \`${labelOf(node, transition)}${target}\``;
  });
  return lines.length > 0 ? [`${title}:\n\n${lines.join('\n')}`] : [];
}

function labelOf(node: AnyStateNode, { eventType, guard, actions, target }: AnyTransitionDefinition): string {
  const condition = guard ? `[${wordOf(guard)}]` : eventType === '' ? '[otherwise]' : '';
  const effect = target ? '' : `/ ${actions.map(wordOf).join(', ')}`;
  return [eventName(node, eventType), condition, effect].filter((part) => part !== '').join(' ');
}

/** `xstate.after.open.server.up.opening` is `after open`; `xstate.error.actor.connection` is `connection fails`. */
function eventName(node: AnyStateNode, eventType: string): string {
  const [, kind, rest = ''] = /^xstate\.(after|done\.actor|error\.actor)\.(.*)$/.exec(eventType) ?? [];
  if (!kind) return eventType;
  if (kind === 'after') return `after ${rest.slice(0, rest.indexOf(`.${node.id}`))}`;
  const port = node.invoke.find(({ id }) => id === rest)?.src ?? rest;
  return `${port === '*' ? 'any actor' : port} ${kind === 'done.actor' ? 'done' : 'fails'}`;
}

/** A guard or an action by its name, and by its parameter when that is a plain word. */
function wordOf(word: unknown): string {
  if (typeof word === 'string') return word;
  const { type, params } = word as { type: string; params?: unknown };
  return typeof params === 'string' && params !== '' ? `${type} ${params}` : type;
}

// ── The tree ─────────────────────────────────────────────────────────────────

const idOf = ({ path }: AnyStateNode): string => path.join('_');
const isCompound = (node: AnyStateNode): boolean => Object.keys(node.states).length > 0;
const within = (node: AnyStateNode): AnyStateNode[] =>
  Object.values(node.states).flatMap((child) => [child, ...within(child)]);
const leaves = (node: AnyStateNode): AnyStateNode[] =>
  isCompound(node) ? within(node).filter((child) => !isCompound(child)) : [node];
const first = (node: AnyStateNode): AnyStateNode =>
  isCompound(node) ? (node.initial.target.map(first).find(() => true) ?? node) : node;
/** A transition that neither leads anywhere nor does anything forbids what an outer state would do. */
const hasMeaning = ({ target, actions }: AnyTransitionDefinition): boolean =>
  target !== undefined || actions.length > 0;

const leadsNowhere = ({ target }: AnyTransitionDefinition): boolean => target === undefined;

/** The inner state decides first, also when it decides to do nothing. */
function isOverridden(leaf: AnyStateNode, outer: AnyStateNode, eventType: string): boolean {
  for (let node = leaf; node !== outer && node.parent; node = node.parent)
    if (node.transitions.has(eventType)) return true;
  return false;
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url))
  writeFileSync(new URL('../../machines/README.md', import.meta.url), diagrams());
