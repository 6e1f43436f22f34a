// One visit to a server: everything it lists, and everything that is asked of it, as the bytes that came. And two visits beside
// each other: what differs, and is not one of the things that troupe changes on purpose.

import { membersOf } from './bytes.mjs';
import { listed } from './wire.mjs';

/** Method, the member of its result, and the capability without which it may say anything. */
export const LISTS = [
  ['tools/list', 'tools', 'tools'],
  ['resources/list', 'resources', 'resources'],
  ['resources/templates/list', 'resourceTemplates', 'resources'],
  ['prompts/list', 'prompts', 'prompts'],
];

/** What troupe changes on purpose, and `differences` therefore does not tell. */
export const DECLARED = [
  '`initialize`, `protocolVersion`: the version that the host asked for, if troupe speaks it; troupe translates.',
  '`initialize`, `capabilities`: lists may always change (`listChanged`), since servers come and go; tasks are troupe’s own (`tasks`); what a server declares as `false` is left out; a server of 2024-11-05, which had no word for it, may complete (`completions`).',
  '`initialize`, `serverInfo`: the same members, perhaps in another order.',
  '`tools/list`, `execution`: whether a tool can be run as a task is troupe’s to say, since it is troupe that keeps tasks.',
  'A tool or prompt that a server does not list is refused by troupe (`-32602`) and never sent; this is not compared.',
];
const MOST_READS = 3;
const SHOWN = 160;

export async function visit(connection, { calls, prompts = [], asks = [] }) {
  const hello = membersOf(membersOf(connection.hello).result);
  const offers = JSON.parse(hello.capabilities);
  const lists = {};
  for (const [method, key, capability] of LISTS)
    if (offers[capability]) lists[key] = await listed(connection, method, key);
  const uris = (lists.resources?.items ?? []).slice(0, MOST_READS).map((item) => JSON.parse(item).uri);
  const answers = {};
  const ask = async (title, method, params, told) => {
    const outcome = outcomeOf(await connection.ask(method, params, told));
    answers[title] = [...(told ?? []).map(saidOf), outcome].join('\n');
  };
  for (const [index, [name, args, isTold]] of calls.entries())
    await ask(`call ${index + 1}, ${name}`, 'tools/call', { name, arguments: args }, isTold && []);
  for (const uri of uris) await ask(`read ${uri}`, 'resources/read', { uri });
  for (const [name, args] of prompts) await ask(`prompt ${name}`, 'prompts/get', { name, arguments: args });
  for (const [index, [method, params]] of asks.entries()) await ask(`ask ${index + 1}, ${method}`, method, params);
  return { hello, lists, answers };
}

/** `result` or `error` with its bytes: what an answer is, whoever numbered it. */
export function outcomeOf(line) {
  const { result, error } = membersOf(line);
  return result === undefined ? `error ${error}` : `result ${result}`;
}

/** What a server says while it works, but for the token that it says it to and the number of a question. */
function saidOf(line) {
  const { method, params = '{}' } = membersOf(line);
  const { progressToken: _, ...said } = membersOf(params);
  return `${JSON.parse(method)} ${JSON.stringify(said)}`;
}

/** One sentence for each thing that is not the same. */
export function differences(direct, through, volatile = []) {
  const settled = (text) => volatile.reduce((all, pattern) => all.replace(pattern, '…'), String(text));
  const found = [];
  const same = (what, one, other) => {
    if (settled(one) !== settled(other)) found.push(`${what}: ${around(settled(one), settled(other))}`);
  };
  for (const [what, one, other] of greetings(direct.hello, through.hello)) same(what, one, other);
  for (const [method, key] of LISTS) {
    const [one, other] = [direct.lists[key], through.lists[key]];
    if (!one) continue;
    same(`${method}, whole`, one.error ?? `${one.items.length} items`, other?.error ?? `${other?.items?.length} items`);
    for (const [index, item] of (one.items ?? []).entries())
      same(`${method}, item ${index}`, withoutExecution(item), withoutExecution(other?.items?.[index] ?? '{}'));
    same(`${method}, beside the items`, one.others, other?.others);
  }
  for (const [title, answer] of Object.entries(direct.answers)) same(title, answer, through.answers[title]);
  return found;
}

function withoutExecution(item) {
  const { execution: _, ...members } = membersOf(item);
  return JSON.stringify(members);
}

/** What `initialize` says, but for what is troupe's own: the version, that lists may change, and tasks. */
function greetings(direct, through) {
  const names = new Set([...Object.keys(direct), ...Object.keys(through)]);
  const rest = [...names].filter((name) => name !== 'protocolVersion' && name !== 'capabilities');
  const [ours, theirs] = [direct, through].map(({ capabilities }) => settledCapabilities(JSON.parse(capabilities)));
  if (JSON.parse(direct.protocolVersion ?? '""') === '2024-11-05') delete theirs.completions;
  const capabilities = new Set([...Object.keys(ours), ...Object.keys(theirs)]);
  return [
    ...rest.map((name) => [`initialize, ${name}`, ...[direct, through].map((hello) => sorted(hello[name]))]),
    ...[...capabilities].map((name) => [`capability ${name}`, ours[name], theirs[name]]),
  ];
}

function settledCapabilities({ tasks: _, ...capabilities }) {
  const texts = Object.entries(capabilities).map(([name, options]) => {
    const { listChanged: _too, ...others } = options;
    const set = Object.entries(others).filter(([, value]) => value !== false); // which is how it is without
    return [name, JSON.stringify(Object.fromEntries(set.sort()))];
  });
  return Object.fromEntries(texts);
}

/** Of what `initialize` says the values count, not their order. */
const sorted = (text) =>
  text?.startsWith('{') ? JSON.stringify(Object.entries(membersOf(text)).sort(([a], [b]) => (a < b ? -1 : 1))) : text;

/** Where two texts part. */
function around(one, other) {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  const from = Math.max(0, at - 40);
  return `${one.slice(from, from + SHOWN)} ≠ ${other.slice(from, from + SHOWN)}`;
}
