// What hosts that know tasks are shown of tools: that each may be a task where troupe runs it, the server's own word where
// the server does, and not a byte else; hosts that know none see what they always saw.

import { describe, expect, test } from 'vitest';
import { runsTasks } from '../../src/catalog/facts.ts';
import { supportIn } from '../../src/catalog/task-support.ts';
import { createView, type Source } from '../../src/catalog/view.ts';
import { catalog, entriesOf, pagesOf } from '../support/catalog.ts';

const SAID: Record<string, string> = {
  silent: '{"name":"silent", "x":12345678901234567890}',
  spaced: '{ "name":"spaced" , "y":1.0 }',
  forbidden: '{"name":"forbidden","execution":{"taskSupport":"forbidden","z":1.0},"a":1}',
  required: '{"execution":{"taskSupport":"required"},"name":"required"}',
  optional: '{"name":"optional","execution":{"taskSupport":"optional"}}',
  odd: '{"name":"odd","execution":[7]}',
  twice: '{"name":"twice","execution":{"taskSupport":"required"},"execution":{"taskSupport":"forbidden"}}',
  hidden: '{"name":"hidden","\\u0065xecution":{"taskSupport":"forbidden"}}',
  talkative: '{"name":"talkative","description":"its execution is slow"}',
};
const NAMES = Object.keys(SAID);

async function shown(sources: Source[], isSingle = true) {
  const it = await catalog();
  for (const { server } of sources) it.set(server, 'tools', await entriesOf('tools', Object.values(SAID)));
  for (const { server } of sources) it.set(server, 'prompts', await entriesOf('prompts', ['{"name":"p"}']));
  const view = createView(it, () => sources, { isSingle });
  return { view, page: view.page('tools', undefined, 1e6).toString(), [Symbol.asyncDispose]: it[Symbol.asyncDispose] };
}

describe('a tool is shown', () => {
  test('as the server wrote it to who knows no tasks, and where the server runs its own', async () => {
    for (const tasks of [undefined, 'its own'] as const) {
      await using it = await shown([{ server: 's', key: 's', ...(tasks && { tasks }) }]);
      expect(it.page).toBe(`{"tools":[${Object.values(SAID).join(',')}]}`);
    }
  });

  test('as one that may be a task where troupe runs them, whatever it said, with all its other bytes', async () => {
    await using it = await shown([{ server: 's', key: 's', tasks: 'ours' }]);
    expect(JSON.parse(it.page).tools.map(({ execution }: any) => execution.taskSupport)).toEqual(
      NAMES.map(() => 'optional'),
    );
    for (const bytes of [
      '{"name":"silent", "x":12345678901234567890,"execution":{"taskSupport":"optional"}}',
      '{"name":"forbidden","execution":{"taskSupport":"optional","z":1.0},"a":1}',
      '{"execution":{"taskSupport":"optional"},"name":"required"}',
      '{"name":"hidden","\\u0065xecution":{"taskSupport":"optional"}}',
    ])
      expect(it.page).toContain(bytes);
  });

  test('in either way under the name that tells servers apart', async () => {
    await using it = await shown(
      [
        { server: 'a', key: 'a', tasks: 'ours' },
        { server: 'b', key: 'b', tasks: 'its own' },
      ],
      false,
    );
    const tools = JSON.parse(it.page).tools.map(({ name, execution }: any) => [name, execution?.taskSupport]);
    expect(tools).toContainEqual(['a__required', 'optional']);
    expect(tools).toContainEqual(['b__required', 'required']);
    expect(tools).toContainEqual(['b__silent', undefined]);
  });

  test('anew when it is known that the server runs its own, and only the tools', async () => {
    await using it = await catalog();
    it.set('s', 'tools', await entriesOf('tools', Object.values(SAID)));
    it.set('s', 'prompts', await entriesOf('prompts', ['{"name":"p"}']));
    let sources: Source[] = [{ server: 's', key: 's', tasks: 'ours' }];
    const view = createView(it, () => sources, { isSingle: false });
    const before = [view.hash('tools'), view.hash('prompts')];
    const cursor = JSON.parse(view.page('tools', undefined, 300).toString()).nextCursor;
    sources = [{ server: 's', key: 's', tasks: 'its own' }];
    expect(view.hash('tools')).not.toBe(before[0]);
    expect(view.hash('prompts')).toBe(before[1]);
    expect(() => view.page('tools', cursor, 300)).toThrow(/cursor/);
    expect(pagesOf(view, 'tools').flat()).toContainEqual({ name: 's__silent', x: 12345678901234567000 });
    sources = [{ server: 's', key: 's', tasks: 'ours' }];
    expect(view.hash('tools')).toBe(before[0]);
  });
});

test('what a server says of each tool counts if it is one of the words, once', async () => {
  const entries = await entriesOf('tools', Object.values(SAID));
  const said = supportIn(entries);
  expect(NAMES.filter((name) => said.get(name) === 'required')).toEqual(['required']);
  expect(NAMES.filter((name) => said.get(name) === 'optional')).toEqual(['optional']);
  expect(said.get('none')).toBeUndefined();
  expect(supportIn(entries)).toBe(said);
});

test('a server runs tasks if it declares the calls of tools among them', () => {
  const declares = (tasks: unknown) =>
    runsTasks({ ...{ era: '2025-11-25', name: '', version: '', info: {} }, capabilities: { tasks } as any });
  expect(declares({ requests: { tools: { call: {} } } })).toBe(true);
  for (const tasks of [
    undefined,
    null,
    {},
    true,
    { requests: null },
    { requests: { tools: true } },
    { requests: { tools: {} } },
  ])
    expect(declares(tasks)).toBe(false);
  expect(runsTasks(undefined)).toBe(false);
});
