// What the configuration says of questions: who must approve, what is answered by rule, where roots may lie.

import { writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { settingsSchema } from '../../src/config/schema.ts';
import { scratch } from '../support/scratch.ts';

async function load(troupe: object, env: NodeJS.ProcessEnv = {}) {
  await using dir = await scratch();
  const path = join(dir.path, 'troupe.json');
  await writeFile(path, JSON.stringify({ mcpServers: {}, 'x-troupe': troupe }));
  const loaded = loadConfig(path, env);
  return {
    dir: dir.path,
    config: loaded.ok ? loaded.config : undefined,
    complaints: loaded.ok ? [] : loaded.complaints,
  };
}

test('approval is one word for all tools, or a word for each name or glob, in their order', () => {
  const parse = (approve: unknown) => settingsSchema.parse({ approve }).approve;
  expect(parse('once')).toEqual([{ tools: '*', when: 'once' }]);
  expect(parse('destructive')).toEqual([{ tools: '*', when: 'destructive' }]);
  expect(parse({ 'delete_*': 'always', '*': 'never' })).toEqual([
    { tools: 'delete_*', when: 'always' },
    { tools: '*', when: 'never' },
  ]);
  expect(settingsSchema.safeParse({ approve: 'sometimes' }).error?.issues[0]?.message).toMatch(/must be "always"/);
});

test('without a word of it, questions last ten minutes, hosts are asked alone for two, and roots lie at home', async () => {
  const { config } = await load({});
  expect(config?.asks).toEqual({ timeoutMs: 600_000, hostMs: 120_000, answererMs: 60_000, maxOpen: 1_000, rules: [] });
  expect(config?.roots).toEqual({ list: [], allow: [homedir()] });
});

test('roots are relative to the file, and their variables are filled in', async () => {
  const { config, dir } = await load({ roots: { list: ['work', `\${PLACE}/x`], allow: ['..'] } }, { PLACE: '/srv' });
  expect(config?.roots).toEqual({ list: [join(dir, 'work'), '/srv/x'], allow: [join(dir, '..')] });
});

test('the key of a plugin comes from the environment, and one that is missing is named, not shown', async () => {
  const plugins = { 'sampling-openai': { apiKey: `\${KEY}` } };
  expect((await load({ plugins }, { KEY: 'k-123' })).config?.plugins).toMatchObject([{ options: { apiKey: 'k-123' } }]);
  const { complaints } = await load({ plugins });
  expect(complaints.map(({ message }) => message)).toEqual([expect.stringMatching(/apiKey.*KEY/)]);
});

test('a rule with a word that is none is complained of where it stands', async () => {
  const { complaints } = await load({ asks: { rules: [{ server: 'a', answer: 'yes' }] } });
  expect(complaints.map(({ message }) => message)).toEqual([expect.stringMatching(/asks\.rules.*answer/)]);
});
