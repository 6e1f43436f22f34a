// What holds for all forms, and for all JSON that claims to be one.

import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { type Choice, defaultsOf, type Field, type Form, readForm, schemaOf } from '../../src/asks/forms/form.ts';
import { createValidator } from '../../src/asks/forms/validator.ts';

const keyword = fc.constantFrom(
  ...[
    'type',
    'properties',
    'required',
    'additionalProperties',
    'enum',
    'enumNames',
    'const',
    'oneOf',
    'anyOf',
    'items',
  ],
  ...[
    'default',
    'title',
    'description',
    'pattern',
    'format',
    'minLength',
    'maxItems',
    'minimum',
    'multipleOf',
    'nullable',
  ],
  ...['$ref', 'allOf', '__proto__', 'constructor', 'a'],
);
const word = fc.constantFrom(
  'object',
  'string',
  'number',
  'integer',
  'boolean',
  'array',
  'null',
  'email',
  '(',
  '',
  'a',
);
const { value: likeSchema } = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 5 }, word, fc.jsonValue({ maxDepth: 1 }), fc.array(tie('value')), tie('object')),
  object: fc.dictionary(keyword, tie('value')).map((members) => ({ type: 'object', ...members })),
}));

const name = fc
  .oneof(
    fc.constantFrom('constructor', 'toString', 'a/b', 'a~b', 'valueOf'),
    fc.string({ unit: 'grapheme', minLength: 1 }),
  )
  .filter((text) => !/\p{Cc}/u.test(text) && text !== '__proto__');
const common = fc.record({ title: fc.string({ minLength: 1 }), description: fc.string(), isRequired: fc.boolean() });
const some = <Value>(arbitrary: fc.Arbitrary<Value>) => fc.option(arbitrary, { nil: undefined });
const count = fc.nat({ max: 8 });
const small = fc.integer({ min: -10, max: 10 });
const choices: fc.Arbitrary<Choice[]> = fc.uniqueArray(
  fc.record({ value: fc.string(), title: fc.string({ minLength: 1 }) }),
  { minLength: 1, selector: ({ value }) => value },
);

const oneOf = (each: Choice[]) => fc.oneof(fc.constantFrom(...each.map(({ value }) => value)), fc.string());

/** What a server would write as the default, whether or not its own limits allow it. */
const typed = fc.oneof(
  fc.record({
    type: fc.constant('string'),
    minLength: some(count),
    maxLength: some(count),
    default: some(fc.string()),
  }),
  fc.record({
    type: fc.constantFrom('number', 'integer'),
    minimum: some(small),
    maximum: some(small),
    exclusiveMinimum: some(small),
    multipleOf: some(fc.integer({ min: 1, max: 9 })),
    default: some(fc.oneof(small, fc.double({ min: -10, max: 10, noNaN: true }))),
  }),
  fc.record({ type: fc.constant('boolean'), default: some(fc.boolean()) }),
  choices.chain((each) =>
    fc.record({ type: fc.constant('choice'), choices: fc.constant(each), default: some(oneOf(each)) }),
  ),
  choices.chain((each) =>
    fc.record({
      type: fc.constant('choices'),
      choices: fc.constant(each),
      minItems: some(count),
      maxItems: some(count),
      uniqueItems: some(fc.constant(true)),
      default: some(fc.array(oneOf(each))),
    }),
  ),
);

const field = fc
  .tuple(name, common, typed, some(fc.constant(true)))
  .map(([called, words, rest, isNullable]) => clean({ name: called, ...words, ...rest, isNullable }) as Field);
const clean = (object: object) => Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
const form: fc.Arbitrary<Form> = fc
  .tuple(fc.uniqueArray(field, { maxLength: 6, selector: (each) => each.name }), fc.boolean())
  .map(([fields, isClosed]) => (isClosed ? { fields, isClosed } : { fields }) as Form);

const validator = createValidator();
afterAll(() => validator.close());

const read = (schema: unknown): Form => {
  const found = readForm(schema);
  if (typeof found === 'string') throw new Error(found);
  return found;
};

describe('readForm', () => {
  it('says of all JSON whether it is a form, and never throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), likeSchema), (value) => {
        const found = readForm(value);
        expect(typeof found === 'string' ? found.length > 0 : Array.isArray(found.fields)).toBe(true);
        expect(readForm(Buffer.from(JSON.stringify(value)))).toEqual(found);
      }),
      { numRuns: 1000 },
    );
  });

  it('reads back every form from its schema', () => {
    fc.assert(
      fc.property(form, (given) => {
        const once = read(schemaOf(given));
        expect(read(JSON.parse(JSON.stringify(schemaOf(once))))).toEqual(once);
        expect(once.fields.map(({ default: _, ...rest }) => rest)).toEqual(
          given.fields.map(({ default: _, ...rest }) => rest),
        );
      }),
    );
  });
});

describe('defaultsOf', () => {
  it('gives what the form itself takes as an answer', async () => {
    let answers = 0;
    await fc.assert(
      fc.asyncProperty(form, async (given) => {
        const schema = Buffer.from(JSON.stringify(schemaOf(given)));
        const content = defaultsOf(read(schemaOf(given)));
        if (!content) return;
        answers++;
        expect(await validator.check(schema, Buffer.from(JSON.stringify(content)))).toBeUndefined();
      }),
      { numRuns: 300 },
    );
    expect(answers).toBeGreaterThan(50);
  });
});
