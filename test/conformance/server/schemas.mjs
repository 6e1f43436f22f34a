// The schemas that the suite looks at word by word: forms with defaults (SEP-1034), the five kinds of choice (SEP-1330),
// and a tool's schema that uses what a careless hand would drop (SEP-1613, SEP-2106).

export const nothing = { type: 'object', properties: {} };
export const oneText = (name) => ({ type: 'object', properties: { [name]: { type: 'string' } }, required: [name] });

export const defaults = {
  type: 'object',
  properties: {
    name: { type: 'string', description: 'User name', default: 'John Doe' },
    age: { type: 'integer', description: 'User age', default: 30 },
    score: { type: 'number', description: 'User score', default: 95.5 },
    status: {
      ...{ type: 'string', description: 'User status' },
      ...{ enum: ['active', 'inactive', 'pending'], default: 'active' },
    },
    verified: { type: 'boolean', description: 'Verification status', default: true },
  },
  required: [],
};

const titled = (word) => ['1', '2', '3'].map((n) => ({ const: `value${n}`, title: `${word} ${n}` }));
const options = ['option1', 'option2', 'option3'];

export const choices = {
  type: 'object',
  properties: {
    untitledSingle: { type: 'string', description: 'One', enum: options },
    titledSingle: { type: 'string', description: 'One with titles', oneOf: titled('Option') },
    legacyEnum: {
      ...{ type: 'string', description: 'One, as it was written before' },
      ...{ enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'] },
    },
    untitledMulti: {
      ...{ type: 'array', description: 'Several', minItems: 1, maxItems: 3 },
      items: { type: 'string', enum: options },
    },
    titledMulti: {
      ...{ type: 'array', description: 'Several with titles', minItems: 1, maxItems: 3 },
      items: { anyOf: titled('Choice') },
    },
  },
  required: [],
};

export const draft2020 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      ...{ $anchor: 'addressDef', type: 'object' },
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};

export const account = {
  type: 'object',
  properties: { username: { type: 'string' }, email: { type: 'string' } },
  required: ['username', 'email'],
};
