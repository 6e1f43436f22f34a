// Texts of a configuration: keys that the schema knows, with values that it may not expect, comments, variables, and damage.

import fc from 'fast-check';
import { httpSchema } from '../../../src/config/http.ts';
import { settingsSchema, troupeSchema } from '../../../src/config/schema.ts';
import { bytesOf, damaged, values } from './messages.ts';

const KEYS = [
  'mcpServers',
  'x-troupe',
  '$schema',
  'command',
  'args',
  'env',
  'cwd',
  'url',
  'headers',
  'type',
  'disabled',
  'oauth',
];
const known = [
  ...KEYS,
  ...Object.keys(settingsSchema.shape),
  ...Object.keys(troupeSchema.shape),
  ...Object.keys(httpSchema.shape),
];
const key = fc.oneof(
  { weight: 10, arbitrary: fc.constantFrom(...known) },
  { weight: 1, arbitrary: fc.string({ maxLength: 10 }) },
);
const text = fc.constantFrom(
  '10s',
  '-1',
  '1MB',
  '$' + '{HOME}',
  '$' + '{NOT_THERE}',
  '$' + '{A:-b}',
  '$' + '{',
  'always',
  'echo',
  '*',
  'http://x',
  '127.0.0.1:1',
  '99:99',
  '/',
);

const { section } = fc.letrec<{ section: unknown; value: unknown }>((tie) => ({
  section: fc.array(fc.tuple(key, tie('value')), { maxLength: 5 }).map((entries) => Object.fromEntries(entries)),
  value: fc.oneof(
    { depthSize: 'small' },
    { weight: 4, arbitrary: text },
    { weight: 2, arbitrary: fc.integer() },
    { weight: 4, arbitrary: tie('section') },
    { weight: 1, arbitrary: fc.array(tie('value'), { maxLength: 3 }) },
    { weight: 1, arbitrary: values },
  ),
}));

const server = fc.record(
  { command: fc.constantFrom('node', ''), args: fc.array(text, { maxLength: 2 }), 'x-troupe': section },
  { requiredKeys: [] },
);
const file = fc.record(
  {
    mcpServers: fc.dictionary(fc.constantFrom('echo', 'a b', '_', 'x@y', 'é'), fc.oneof(server, section), {
      maxKeys: 3,
    }),
    'x-troupe': section,
  },
  { requiredKeys: [] },
);

export const configurations: fc.Arbitrary<string> = damaged(
  fc
    .tuple(fc.oneof({ weight: 8, arbitrary: file }, values), fc.constantFrom('', '// a comment\n', '/* ', '\ufeff'))
    .map(([value, before]) => bytesOf(`${before}${JSON.stringify(value, null, 1) ?? ''}`)),
);
