// What a server may ask in a form, in each way that servers write it, and what it may not.

import { createRequire } from 'node:module';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { CreateMessageRequestSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { readAddress } from '../../src/asks/address.ts';
import { defaultsOf, type Form, readForm } from '../../src/asks/forms/form.ts';
import { readSampling } from '../../src/asks/models/messages.ts';

const form = (properties: object, rest: object = {}) => ({ type: 'object', properties, ...rest });
const fieldOf = (property: object, rest: object = {}) => (readForm(form({ it: property }, rest)) as Form).fields[0];
const refusal = (property: unknown) => readForm(form({ it: property as object }));
const plain = { name: 'it', title: 'it', description: '', isRequired: false };
const texts = [
  { value: 'r', title: 'Red' },
  { value: 'g', title: 'Green' },
];
const titled = [
  { const: 'r', title: 'Red' },
  { const: 'g', title: 'Green' },
];

describe('readForm', () => {
  it.each([
    ['a text', { type: 'string' }, { type: 'string' }],
    [
      'a text with all its limits',
      { type: 'string', minLength: 3, maxLength: 50, pattern: '^[A-Za-z]+$', format: 'email', default: 'user' },
      { type: 'string', minLength: 3, maxLength: 50, pattern: '^[A-Za-z]+$', format: 'email', default: 'user' },
    ],
    ['a number', { type: 'number', minimum: 0, default: 5.5 }, { type: 'number', minimum: 0, default: 5.5 }],
    ['an integer', { type: 'integer', maximum: 9, default: 5 }, { type: 'integer', maximum: 9, default: 5 }],
    ['a yes or no', { type: 'boolean', default: false }, { type: 'boolean', default: false }],
    [
      'an enum',
      { type: 'string', enum: ['r'], default: 'r' },
      { type: 'choice', choices: [{ value: 'r', title: 'r' }], default: 'r' },
    ],
    [
      'an enum with names',
      { type: 'string', enum: ['r', 'g'], enumNames: ['Red', 'Green'] },
      { type: 'choice', choices: texts },
    ],
    ['a titled choice', { type: 'string', oneOf: titled }, { type: 'choice', choices: texts }],
    [
      'a list of choices',
      { type: 'array', items: { type: 'string', enum: ['r'] }, minItems: 1, maxItems: 2, default: ['r'] },
      { type: 'choices', choices: [{ value: 'r', title: 'r' }], minItems: 1, maxItems: 2, default: ['r'] },
    ],
    ['a list of titled choices', { type: 'array', items: { anyOf: titled } }, { type: 'choices', choices: texts }],
    [
      'one of a model in Python that may be left out',
      { anyOf: [{ type: 'integer' }, { type: 'null' }], default: null },
      { type: 'integer', isNullable: true },
    ],
    [
      'a Literal in Python',
      { const: 'yes', type: 'string' },
      { type: 'choice', choices: [{ value: 'yes', title: 'yes' }] },
    ],
    ['a bound of zod', { type: 'number', exclusiveMinimum: 0 }, { type: 'number', exclusiveMinimum: 0 }],
    [
      'words that only describe',
      { type: 'boolean', examples: [true], deprecated: true, 'x-order': 3 },
      { type: 'boolean' },
    ],
    ['a format that nobody knows', { type: 'string', format: 'phone' }, { type: 'string', format: 'phone' }],
  ])('takes %s', (_, property, field) => {
    expect(fieldOf(property)).toEqual({ ...plain, ...field });
  });

  it('knows what is required, what it is called and whether more may be said', () => {
    const property = { type: 'string', title: 'Name', description: 'Your name' };
    expect(readForm(form({ it: property }, { required: ['it'], additionalProperties: false }))).toEqual({
      fields: [{ name: 'it', title: 'Name', description: 'Your name', isRequired: true, type: 'string' }],
      isClosed: true,
    });
  });

  it('takes what schema generators put around a form', () => {
    const around = {
      $schema: 'http://json-schema.org/draft-07/schema#',
      $id: 'x',
      title: 'T',
      description: 'D',
      $defs: {},
    };
    expect(readForm(form({}, { ...around, additionalProperties: {} }))).toEqual({ fields: [] });
    expect(readForm(Buffer.from('{"type":"object"}'))).toEqual({ fields: [] });
  });

  it.each([
    ['a nested object', { type: 'object', properties: {} }, 'it: it must not be an object, because a form is flat'],
    ['a list of objects', { type: 'array', items: { type: 'object' } }, 'it: a list must say in its items'],
    ['a list of anything', { type: 'array' }, 'it: a list must say in its items'],
    ['a reference', { $ref: '#/$defs/a' }, 'it: it cannot have $ref'],
    ['a reference beside a type', { type: 'string', $ref: '#/$defs/a' }, 'it: it cannot have $ref'],
    ['allOf', { type: 'string', allOf: [] }, 'it: it cannot have allOf'],
    ['not', { type: 'string', not: {} }, 'it: it cannot have not'],
    ['anyOf of types', { anyOf: [{ type: 'string' }, { type: 'number' }] }, 'it: its anyOf must be a list of texts'],
    ['choices that are no texts', { type: 'integer', enum: [1, 2] }, 'it: its choices must be texts'],
    ['no choices', { type: 'string', enum: [] }, 'it: its enum must be a list of choices'],
    ['a limit that is none', { type: 'string', minLength: '3' }, 'it: its minLength must be a whole number'],
    ['a limit of another type', { type: 'string', minimum: 3 }, 'it: it cannot have minimum'],
    ['a broken pattern', { type: 'string', pattern: '(' }, 'it: its pattern must be a regular expression'],
    ['null', { type: 'null' }, 'it: its type must be'],
    ['no description at all', true, 'it: it must be described by an object'],
    [
      'too many choices',
      { type: 'string', enum: Array.from({ length: 1001 }, String) },
      'it: it must not have more than 1000',
    ],
  ])('refuses %s', (_, property, sentence) => {
    expect(refusal(property)).toContain(sentence);
  });

  it.each([
    ['no object', [], 'must be a JSON object'],
    ['another type', { type: 'array' }, '"type": "object"'],
    ['a condition', form({}, { if: {} }), 'a form cannot have if'],
    ['a combination', form({}, { allOf: [] }), 'a form cannot have allOf'],
    ['properties by pattern', form({}, { patternProperties: {} }), 'a form cannot have patternProperties'],
    ['a schema for the rest', form({}, { additionalProperties: { type: 'string' } }), 'additionalProperties must be'],
    ['what it does not ask for', form({}, { required: ['x'] }), 'requires "x", which is none'],
    ['101 properties', form(Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`p${i}`, {}]))), 'more than 100'],
    ['more than 64 KB', form({ it: { type: 'string', description: 'x'.repeat(65_536) } }), 'larger than 64 KB'],
    ['a long name', form({ ['n'.repeat(201)]: { type: 'string' } }), 'cannot be the name'],
    ['a name with an escape in it', form({ '\u001b[2J': { type: 'string' } }), 'cannot be the name'],
    [
      'the name of a prototype',
      JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}}}'),
      'cannot be the name',
    ],
    ['bytes that are not JSON', Buffer.from('{"type":'), 'must be a JSON object'],
    ['bytes beyond measure', Buffer.alloc(70_000, 0x20), 'larger than 64 KB'],
  ])('refuses a form of %s', (_, schema, sentence) => {
    expect(readForm(schema)).toContain(sentence);
  });
});

describe('defaultsOf', () => {
  const filled = (properties: object, required: string[] = []) =>
    defaultsOf(readForm(form(properties, { required })) as Form);

  it('fills in every default, and nothing where a required field has none', () => {
    const properties = {
      a: { type: 'string', default: '' },
      b: { type: 'boolean', default: false },
      c: { type: 'number' },
    };
    expect(filled(properties, ['a', 'b'])).toEqual({ a: '', b: false });
    expect(filled(properties, ['c'])).toBeUndefined();
  });

  it.each([
    { type: 'string', maxLength: 2, default: 'abc' },
    { type: 'integer', default: 1.5 },
    { type: 'number', minimum: 18, default: 17 },
    { type: 'number', default: '17' },
    { type: 'string', enum: ['a'], default: 'b' },
    { type: 'array', items: { enum: ['a'] }, default: ['b'] },
    { type: 'array', items: { enum: ['a'] }, minItems: 1, default: [] },
  ])('does not count a default that its own field forbids: %j', (property) => {
    expect(filled({ it: property })).toEqual({});
  });
});

describe('what real servers ask', () => {
  it('is taken from server-everything', async () => {
    const command = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js');
    const capabilities = { elicitation: { form: {}, url: {} }, sampling: {} };
    const client = new Client({ name: 'test', version: '1' }, { capabilities });
    const asked: any[] = [];
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
      asked.push(params);
      return { action: 'cancel' };
    });
    client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => {
      asked.push(params);
      return { role: 'assistant', model: 'm', content: { type: 'text', text: 'x' } };
    });
    await client.connect(
      new StdioClientTransport({ command: process.execPath, args: [command, 'stdio'], stderr: 'ignore' }),
    );
    const call = (name: string, args: Record<string, unknown> = {}) =>
      client.request({ method: 'tools/call', params: { name, arguments: args } }, z.any());
    const url = 'https://modelcontextprotocol.io/';
    await call('trigger-elicitation-request');
    await call('trigger-url-elicitation', { url, message: 'Go', elicitationId: 'e1' });
    await call('trigger-sampling-request', { prompt: 'Hi', maxTokens: 5 });
    await client.close();
    const [inForm, atUrl, sampling] = asked;
    expect(readForm(inForm.requestedSchema)).toMatchObject({ fields: expect.any(Array) });
    expect((readForm(inForm.requestedSchema) as Form).fields).toHaveLength(13);
    expect(readAddress(atUrl.url)).toMatchObject({ warnings: [] });
    expect(readSampling(Buffer.from(JSON.stringify(sampling)))).toMatchObject({ iterations: 0, hasTools: false });
  });

  it('is taken from the conformance suite', async () => {
    const { defaults, choices, oneText } = await import('../conformance/server/schemas.mjs' as string);
    expect(defaultsOf(readForm(defaults) as Form)).toEqual({
      name: 'John Doe',
      age: 30,
      score: 95.5,
      status: 'active',
      verified: true,
    });
    const { fields } = readForm(choices) as Form;
    expect(fields.map(({ type }) => type)).toEqual(['choice', 'choice', 'choice', 'choices', 'choices']);
    expect(readForm(oneText('username'))).toMatchObject({ fields: [{ name: 'username', isRequired: true }] });
  });
});
