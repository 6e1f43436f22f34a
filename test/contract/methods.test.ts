// The table of methods against the schemas of MCP, and what each version does differently.
// A schema in test/fixtures/schema is cut down to its methods; the whole schema.json of a version would do as well.

import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { offers } from '../../src/catalog/facts.ts';
import { KINDS } from '../../src/catalog/kinds.ts';
import { codecOf, ERAS, type Era } from '../../src/protocol/eras.ts';
import { nameKeyOf } from '../../src/protocol/headers.ts';
import {
  CALL_VERBS,
  isCall,
  isForeignNotification,
  isForeignRequest,
  isSentBy,
  mayAsk,
  mayBeCancelled,
  mayProgress,
  methodNames,
  methodOfVerb,
  rowOf,
} from '../../src/protocol/methods.ts';

const mayBeTask = (method: string): boolean => rowOf(method)?.mayBeTask === true;

type Definition = { anyOf?: Reference[]; properties?: { method?: { const?: string } } } & Partial<Reference>;
type Reference = { $ref: string };

const SCHEMAS = new URL('../fixtures/schema/', import.meta.url);

/** The methods that one of the four unions of a schema consists of. */
function methodsIn(era: Era, union: string): string[] {
  const schema = JSON.parse(readFileSync(new URL(`${era}.json`, SCHEMAS), 'utf8'));
  const definitions: Record<string, Definition | undefined> = schema.$defs ?? schema.definitions;
  const read = (definition: Definition | undefined): string[] => {
    if (definition?.anyOf) return definition.anyOf.flatMap(read);
    if (definition?.$ref) return read(definitions[definition.$ref.split('/').at(-1) ?? '']);
    return definition?.properties?.method?.const ? [definition.properties.method.const] : [];
  };
  return read(definitions[union]);
}

describe('the table of methods', () => {
  test('has a schema to be held to for every version that is spoken, and for no other', () => {
    expect(readdirSync(SCHEMAS).sort()).toEqual(ERAS.map((era) => `${era}.json`));
  });

  describe.each(ERAS)('in %s', (era) => {
    test.each(['client', 'server'] as const)('has exactly what a %s sends', (sender) => {
      const union = sender === 'client' ? 'Client' : 'Server';
      const specified = [...methodsIn(era, `${union}Request`), ...methodsIn(era, `${union}Notification`)];
      expect(specified.length).toBeGreaterThan(5);
      expect(methodNames.filter((method) => isSentBy(sender, method, era)).sort()).toEqual(specified.sort());
    });
  });

  test('says of no method anything that only requests can be', () => {
    const told = methodNames.filter((method) => method.startsWith('notifications/'));
    const facts = [isCall, mayAsk, mayProgress, mayBeTask];
    expect(told.filter((method) => facts.some((fact) => fact(method)) || rowOf(method)?.needs)).toEqual([]);
  });

  test('knows no method by the name of something that every object has', () => {
    for (const method of ['constructor', '__proto__', 'toString', '']) {
      expect(rowOf(method)).toBeUndefined();
      expect(isCall(method) || isSentBy('client', method, '2025-11-25')).toBe(false);
    }
  });
});

test('the calls have each a verb, and may ask, tell their progress, be cancelled and be tasks as MCP has it', () => {
  const about = (method: string) => [mayAsk, mayProgress, mayBeCancelled, mayBeTask].map((fact) => fact(method));
  expect(CALL_VERBS.map((verb) => [verb, methodOfVerb(verb), ...about(methodOfVerb(verb) ?? '')])).toEqual([
    ['call', 'tools/call', true, true, true, true],
    ['read', 'resources/read', true, true, true, false],
    ['prompt', 'prompts/get', true, true, true, false],
    ['complete', 'completion/complete', false, true, true, false],
  ]);
  expect(methodNames.filter(mayBeTask)).toEqual(['tools/call', 'sampling/createMessage', 'elicitation/create']);
  expect(methodNames.filter((method) => !mayBeCancelled(method))).toEqual(['initialize']);
});

test('a header repeats the name of what is called, where one member of the params has it', () => {
  const named = methodNames.flatMap((method) => (nameKeyOf(method) ? [[method, nameKeyOf(method)]] : []));
  expect(named).toEqual([
    ['tools/call', 'name'],
    ['resources/read', 'uri'],
    ['prompts/get', 'name'],
  ]);
});

test('each kind of thing is listed by one method, and named where targets look for it', () => {
  expect(Object.entries(KINDS).map(([kind, { method, key }]) => [kind, method, key])).toEqual([
    ['tools', 'tools/list', 'name'],
    ['resources', 'resources/list', 'uri'],
    ['templates', 'resources/templates/list', 'uriTemplate'],
    ['prompts', 'prompts/list', 'name'],
  ]);
});

describe('a server is asked only what it declared', () => {
  const asked = (capabilities: object, era: Era = '2025-11-25') => {
    const declared = codecOf(era).serverCapabilities(capabilities as any);
    const facts = { era, capabilities: declared, name: '', version: '', info: {} };
    return methodNames.filter(
      (method) => isSentBy('client', method, era) && rowOf(method)?.needs && offers(facts, method),
    );
  };

  test.each<[object, string[]]>([
    [{}, []],
    [{ tools: {} }, ['tools/list', 'tools/call']],
    [{ prompts: { listChanged: true } }, ['prompts/list', 'prompts/get']],
    [{ resources: {} }, ['resources/list', 'resources/templates/list', 'resources/read']],
    [{ logging: {}, completions: {} }, ['completion/complete', 'logging/setLevel']],
    [{ tasks: {} }, ['tasks/get', 'tasks/result']],
    [{ tasks: { cancel: {}, list: null } }, ['tasks/get', 'tasks/result', 'tasks/cancel']],
  ])('%j', (declared, methods) => {
    expect(asked(declared)).toEqual(methods);
  });

  test('and subscribed to only if it says so', () => {
    expect(asked({ resources: { subscribe: true } })).toContain('resources/subscribe');
    expect(asked({ resources: { subscribe: false } })).not.toContain('resources/subscribe');
  });

  test('where the first version had no word for completions, whoever has prompts or resources is tried', () => {
    const completing = (declared: object) => ERAS.filter((era) => asked(declared, era).includes('completion/complete'));
    expect(completing({ prompts: {} })).toEqual(['2024-11-05']);
    expect(completing({ resources: {} })).toEqual(['2024-11-05']);
    expect(completing({ tools: {} })).toEqual([]);
    expect(completing({ completions: {} })).toEqual(ERAS.slice(1));
  });
});

describe('versions differ', () => {
  const having = (fact: (era: Era) => unknown) => ERAS.filter((era) => fact(era));

  test('in what their messages may be', () => {
    expect(having((era) => codecOf(era).allowsBatches)).toEqual(['2025-03-26']);
    expect(having((era) => codecOf(era).allowsContentLists)).toEqual(['2025-11-25']);
    expect(having((era) => codecOf(era).resumesClosedStreams)).toEqual(['2025-11-25']);
    const said = { progress: 1, total: 2, message: 'half' };
    expect(having((era) => 'message' in codecOf(era).progress(said))).toEqual(ERAS.slice(1));
  });

  test('in tasks, which count only where the version has them', () => {
    expect(having((era) => codecOf(era).hasTasks)).toEqual(['2025-11-25']);
    expect(having((era) => codecOf(era).serverCapabilities({ tasks: {} }).tasks)).toEqual(['2025-11-25']);
  });

  const ALL = { roots: {}, elicitation: { form: {}, url: {} }, sampling: { tools: {}, context: {} } };
  const FORMS = { form: {} };
  test.each<[Era, object, object]>([
    ['2024-11-05', ALL, { roots: {}, sampling: { context: {} } }],
    ['2025-03-26', ALL, { roots: {}, sampling: { context: {} } }],
    ['2025-06-18', ALL, { roots: {}, sampling: { context: {} }, elicitation: FORMS }],
    ['2025-11-25', ALL, ALL],
    ['2025-06-18', { elicitation: {} }, { elicitation: FORMS }],
    ['2025-11-25', { elicitation: {} }, { elicitation: FORMS }],
    ['2025-06-18', { elicitation: { url: {} } }, {}],
    ['2025-11-25', { elicitation: { url: {} } }, { elicitation: { url: {} } }],
    ['2025-11-25', { experimental: { a: {} } }, { experimental: { a: {} } }],
  ])('in what a host can answer: %s and %j', (era, declared, meant) => {
    const { clientCapabilities } = codecOf(era);
    expect(clientCapabilities(declared)).toEqual(meant);
    expect(clientCapabilities(clientCapabilities(declared))).toEqual(meant); // a session's row is read again
  });
});

describe('a method that MCP does not have', () => {
  test.each(['skills/list', 'tools/resolve', 'x', 'org.example/do-it', 'resources/directory/read'])(
    '%s is sent',
    (method) => {
      expect([isForeignRequest(method), isForeignNotification(method), mayAsk(method)]).toEqual([true, false, true]);
      expect(isForeignNotification(`notifications/${method}`)).toBe(true);
      expect(isForeignRequest(`notifications/${method}`)).toBe(false);
    },
  );

  test.each([
    ...methodNames,
    ...[
      'Tools/Call',
      'tools/call/',
      'tools//call',
      ' tools/call',
      'tools/call\n',
      'tools.call',
      'TOOLS_CALL',
      'toolsCall',
    ],
    ...['tools/\u0441all', 'INITIALIZE', 'server/discover', 'subscriptions/listen', 'tasks/update', 'rpc.discover', ''],
    ...['a'.repeat(100), 'a/'.repeat(20), '__proto__', 'Notifications/x'],
  ])('%s is none, nor can it be taken for one', (method) => {
    expect([isForeignRequest(method), isForeignNotification(method)]).toEqual([false, false]);
  });
});

test('nobody but the protocol names a version, so that nobody compares them', () => {
  const src = new URL('../../src/', import.meta.url);
  const files = readdirSync(src, { recursive: true }).map(String);
  const naming = files
    .filter(
      (path) => path.endsWith('.ts') && /['"`]20\d\d-\d\d-\d\d['"`]/.test(readFileSync(new URL(path, src), 'utf8')),
    )
    .filter((path) => !path.startsWith('protocol/eras'));
  expect(naming).toEqual(['protocol/methods.ts']);
});
