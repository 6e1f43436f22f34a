// Every server twice: by hand, and behind one daemon that has all of them; there at its own endpoint, at the endpoint of all,
// over NATS, and once more after its process was killed.

import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'nats';
import { startTroupe } from '../conformance/troupe.mjs';
import { membersOf } from './bytes.mjs';
import { openStage } from './stage.mjs';
import { differences, LISTS, outcomeOf, visit } from './visit.mjs';
import { listed, overHttp, overPipes } from './wire.mjs';

const AT_ONCE = 3;
const OPEN_MS = 120_000;
const BACK_MS = 60_000;

export async function playServers(servers, tell) {
  if (servers.length === 0) return [];
  tell(`installing ${servers.length} servers`);
  const stage = await openStage(servers);
  try {
    const scenes = servers.map((server) => ({ server, troubles: [] }));
    for (const scene of scenes)
      if (stage.missing.has(scene.server.name)) scene.troubles.push(stage.missing.get(scene.server.name));
    const open = scenes.filter(({ troubles }) => troubles.length === 0);
    await stage.refill();
    await each(open, (scene) => playDirect(stage, scene), tell, 'by hand');
    await stage.refill();
    const visited = open.filter(({ direct }) => direct);
    if (visited.length > 0) await playThrough(stage, visited, tell);
    return scenes.map(row);
  } finally {
    await stage.close();
  }
}

async function playDirect(stage, scene) {
  const { server } = scene;
  if (server.path) await stage.serve(server);
  const connection = await (server.path ? overHttp(stage.urlOf(server)) : overPipes(stage.launchOf(server)));
  try {
    scene.direct = await visit(connection, stage.filled(server, server));
  } finally {
    await connection.close();
  }
}

async function playThrough(stage, scenes, tell) {
  const definitions = scenes.map(({ server }) => [server.name, definitionOf(stage, server)]);
  const troupe = await startTroupe(Object.fromEntries(definitions));
  try {
    await each(scenes, (scene) => playOne(stage, troupe, scene), tell, 'through troupe');
    await playAll(stage, troupe, scenes);
    await playBus(stage, troupe, scenes);
    await each(scenes, (scene) => playRestart(stage, troupe, scene), tell, 'after a restart');
  } finally {
    await troupe.close();
  }
}

/** As a newcomer would write it, with no setting of troupe's. */
const definitionOf = (stage, server) =>
  server.path ? { type: 'http', url: stage.urlOf(server) } : stage.launchOf(server);

async function playOne(stage, troupe, scene) {
  const { server, direct, troubles } = scene;
  await troupe.until(server.name, ['ready'], OPEN_MS);
  scene.isOpen = true;
  const connection = await overHttp(`${troupe.http}/mcp/${server.name}`);
  try {
    const through = await visit(connection, stage.filled(server, server));
    const found = differences(direct, through, server.volatile);
    const declared = (server.differs ?? []).filter(([pattern]) => found.some((each) => pattern.test(each)));
    scene.note = [server.note, ...declared.map(([, why]) => why)].filter(Boolean).join('; ');
    troubles.push(...found.filter((each) => !declared.some(([pattern]) => pattern.test(each))));
  } finally {
    await connection.close();
  }
}

/** What names an item of a list, and how that name may be spelled at `/mcp`. */
const underServer = (server, name) => [`${server}__${name}`];
const asItIsOrPrefixed = (server, uri) => [uri, `troupe+${server}:${uri}`];
const SPELLINGS = {
  tools: ['name', underServer],
  resources: ['uri', asItIsOrPrefixed],
  resourceTemplates: ['uriTemplate', asItIsOrPrefixed],
  prompts: ['name', underServer],
};

/** At `/mcp`: whatever a server lists is there under its long name and otherwise as it is, and one call to each server. */
async function playAll(stage, troupe, scenes) {
  const connection = await overHttp(`${troupe.http}/mcp`);
  try {
    for (const [method, key] of LISTS) {
      const { items } = await listed(connection, method, key);
      for (const scene of scenes) scene.troubles.push(...missing(key, items, scene));
    }
    for (const scene of scenes)
      await again(stage, scene, 'at /mcp', (name, args) =>
        connection.ask('tools/call', { name: `${scene.server.name}__${name}`, arguments: args }),
      );
  } finally {
    await connection.close();
  }
}

function missing(key, items, { server, direct }) {
  const [member, spellings] = SPELLINGS[key];
  const offered = new Map(items.map((item) => apart(item, member)));
  return (direct.lists[key]?.items ?? []).flatMap((item) => {
    const [name, rest] = apart(item, member);
    const found = spellings(server.name, name).map((spelling) => offered.get(spelling));
    return found.includes(rest) ? [] : [`at /mcp ${name} is ${found.every((each) => !each) ? 'missing' : 'another'}`];
  });
}

/** The name of an item, and all else that it says. */
function apart(item, member) {
  const { [member]: name, execution: _, ...rest } = membersOf(item);
  return [JSON.parse(name), JSON.stringify(rest)];
}

async function playBus(stage, troupe, scenes) {
  const { NATS_URL } = await troupe.ask('env');
  const { servers, user, pass, token } = addressOf(NATS_URL);
  const bus = await connect({ servers, user, pass, token });
  try {
    for (const scene of scenes)
      await again(stage, scene, 'over NATS', async (name, args) => {
        const subject = `troupe.call.${scene.server.name}.${name}`;
        const reply = await bus.request(subject, JSON.stringify(args), { timeout: 30_000 });
        const member = reply.headers?.has('Nats-Service-Error-Code') ? 'error' : 'result';
        return `{"${member}":${reply.string()}}`;
      });
  } finally {
    await bus.close();
  }
}

/** Killed without a word, as the kernel does it when memory runs out. */
async function playRestart(stage, troupe, scene) {
  const { server } = scene;
  if (server.calls.length === 0) return;
  if (server.path) await stage.serve(server);
  else {
    const { pid } = await troupe.until(server.name, ['ready']);
    process.kill(pid, 'SIGKILL');
    await eventually(async () => (await troupe.until(server.name, ['ready'], BACK_MS)).pid !== pid);
  }
  const connection = await overHttp(`${troupe.http}/mcp/${server.name}`);
  try {
    await again(stage, scene, 'after a restart', (name, args) =>
      connection.ask('tools/call', { name, arguments: args }),
    );
  } finally {
    await connection.close();
  }
}

/** The first call once more, by another way: its answer is compared with the one that was had by hand. */
async function again(stage, { server, direct, troubles }, way, call) {
  const [first] = stage.filled(server, server.calls);
  if (!first) return;
  const line = await call(...first).catch((error) => `{"error":${JSON.stringify(error.message)}}`);
  const [title] = Object.keys(direct.answers);
  const answers = { [title]: outcomeOf(line) };
  const found = differences(
    { ...NOTHING, answers: { [title]: direct.answers[title] } },
    { ...NOTHING, answers },
    server.volatile,
  );
  troubles.push(...found.map((each) => `${way}: ${each}`));
}
const NOTHING = { hello: { capabilities: '{}' }, lists: {} };

function addressOf(url) {
  const { host, username, password } = new URL(url);
  const login = password ? { user: username, pass: password } : { token: username || undefined };
  return { servers: host, ...login };
}

async function each(scenes, play, tell, what) {
  const queue = [...scenes];
  const work = async () => {
    for (let scene = queue.shift(); scene; scene = queue.shift()) {
      const { server, troubles } = scene;
      const from = performance.now();
      await play(scene).catch((error) => troubles.push(`${what}: ${error.message}`));
      tell(`${what}: ${server.name} ${((performance.now() - from) / 1000).toFixed(1)} s`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

async function eventually(check) {
  for (const deadline = performance.now() + BACK_MS; performance.now() < deadline; await sleep(25))
    if (await check()) return;
  throw new Error('it did not come back');
}

function row({ server, direct, isOpen = false, troubles, note }) {
  const count = (key) => direct?.lists[key]?.items?.length ?? (direct?.lists[key]?.error ? 'error' : '–');
  const answers = Object.values(direct?.answers ?? {});
  return {
    ...server,
    transport: server.path ? 'Streamable HTTP' : 'stdio',
    era: direct ? JSON.parse(direct.hello.protocolVersion) : '–',
    counts: ['tools', 'resources', 'resourceTemplates', 'prompts'].map(count),
    compared: answers.length,
    refused: answers.filter((answer) => /^error |"isError":true/m.test(answer)).length,
    ...{ isOpen, troubles, note },
  };
}
