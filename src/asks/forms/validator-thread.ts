// Checks answers against the forms that they were given to, off the main thread: a server's pattern may never end.
// Whoever started this thread ends it when a check takes too long, so nothing here watches the clock.

import { parentPort } from 'node:worker_threads';
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv';
import formats from 'ajv-formats';
import { isJsonObject, members } from '../../protocol/json.ts';
import { expressionOf } from './field.ts';
import { readForm } from './form.ts';
import { schemaOf } from './schema.ts';

export type ToValidator = { readonly schema: Uint8Array; readonly content: Uint8Array };

export type FromValidator =
  | { readonly type: 'ready' }
  | { readonly type: 'started' }
  | { readonly type: 'checked'; readonly problem: string | undefined };

const tell = (message: FromValidator): void => parentPort?.postMessage(message);

parentPort?.on('message', ({ schema, content }: ToValidator) => {
  tell({ type: 'started' });
  tell({ type: 'checked', problem: check(Buffer.from(schema), Buffer.from(content)) });
});

/** What is wrong with the content, naming the field. */
function check(schema: Buffer, content: Buffer): string | undefined {
  if (!isJsonObject(content)) return 'the content must be a JSON object';
  const again = repeated(content);
  if (again !== undefined) return `${again}: must not be given twice`;
  try {
    const validate = validatorOf(schema);
    if (typeof validate === 'string') return validate;
    if (validate(JSON.parse(content.toString()))) return undefined;
    const [error] = validate.errors ?? [];
    return error ? sentenceOf(error) : CANNOT;
  } catch {
    return CANNOT; // a pattern that needs more of a stack than there is; what V8 says of it helps nobody
  }
}

const CANNOT = 'the schema cannot be checked; ask the server for a simpler one';

// The same tool asks the same thing again and again, and to compile costs a hundred times what a check does.
const compiled = new Map<string, ValidateFunction | string>();
const MAX_COMPILED = 32;

function validatorOf(schema: Buffer): ValidateFunction | string {
  const text = schema.toString('latin1');
  const known = compiled.get(text) ?? compile(schema);
  compiled.delete(text);
  compiled.set(text, known);
  const [oldest] = compiled.keys();
  if (compiled.size > MAX_COMPILED && oldest !== undefined) compiled.delete(oldest);
  return known;
}

function compile(schema: Buffer): ValidateFunction | string {
  const form = readForm(schema);
  if (typeof form === 'string') return form;
  const ajv = new Ajv(SETTINGS);
  formats.default(ajv);
  return ajv.compile({ ...schemaOf(form), additionalProperties: form.isClosed ? false : VALUE });
}

/** Readers of JSON disagree on which one is meant, and what we check must be what the server acts on. */
function repeated(content: Buffer): string | undefined {
  const names = new Set<string>();
  for (const [name] of members(content)) {
    if (names.has(name)) return name;
    names.add(name);
  }
  return undefined;
}

const regExp = Object.assign((pattern: string): RegExp => expressionOf(pattern) ?? /(?:)/, { code: 'new RegExp' });

// The schema is our own writing of a form that was read, so it need not be checked; formats that nobody knows mean nothing.
// A field may be called `constructor`, which every object has and no answer gives: hence own properties only.
const SETTINGS: Options = {
  strict: false,
  validateSchema: false,
  meta: false,
  logger: false,
  ownProperties: true,
  code: { regExp },
};

/** What MCP allows as the value of a field, for those that the form does not name. */
const VALUE = { type: ['string', 'number', 'boolean', 'array'], items: { type: 'string' } };

const MAX_MESSAGE = 300;

function sentenceOf({ keyword, instancePath, params, message = 'is not valid' }: ErrorObject): string {
  if (keyword === 'required') return `${params.missingProperty}: is required`;
  if (keyword === 'additionalProperties') return `${params.additionalProperty}: is not one of the fields`;
  const why = keyword === 'enum' ? `must be one of ${params.allowedValues.join(', ')}` : message;
  return `${fieldOf(instancePath)}: ${why.length > MAX_MESSAGE ? `${why.slice(0, MAX_MESSAGE)}…` : why}`;
}

/** The first part of a JSON pointer. */
const fieldOf = (pointer: string): string => (pointer.split('/')[1] ?? '').replaceAll('~1', '/').replaceAll('~0', '~');

// The first compilation is ten times slower than the next: it is not for the first answer to pay.
check(Buffer.from('{"type":"object","properties":{"a":{"type":"string","pattern":"a"}}}'), Buffer.from('{"a":"a"}'));
tell({ type: 'ready' });
