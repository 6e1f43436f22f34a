// One field of a form: its question, asked until the answer is allowed; what is typed, read as a value; and a value as text.

import { type Choice, type Field, schemaOf } from '../../asks/forms/form.ts';
import type { Validator } from '../../asks/forms/validator.ts';
import type { Dialog } from '../terminal/dialog.ts';
import { cut } from '../terminal/table.ts';
import { folded, oneLine } from '../terminal/words.ts';

/** Room for the answer behind the question. */
const ROOM = 16;
const LONGEST_SUGGESTION = 40;

type FieldAsked = {
  readonly dialog: Dialog;
  readonly validator: Validator;
  readonly field: Field;
  readonly suggested: Value;
};

export async function askField({ dialog, validator, field, suggested }: FieldAsked): Promise<Value> {
  const { head, prompt } = questionOf(dialog, field, suggested);
  for (const line of head) dialog.say(line);
  for (;;) {
    const read = readValue(field, await dialog.ask(prompt), suggested);
    if ('problem' in read) dialog.complain(`  ${read.problem}`);
    else {
      const problem = await problemWith(validator, field, read.value);
      if (problem === undefined) return read.value;
      dialog.complain(`  It ${problem}.`);
    }
  }
}

/** The validator that also checks the whole form. It runs in a thread, because a server's pattern may never end. */
async function problemWith(validator: Validator, field: Field, value: Value): Promise<string | undefined> {
  if (value === undefined) return undefined;
  const json = (each: object): Buffer => Buffer.from(JSON.stringify(each));
  const problem = await validator.check(json(schemaOf({ fields: [field] })), json({ [field.name]: value }));
  const why = problem?.startsWith(`${field.name}: `) ? problem.slice(field.name.length + 2) : problem;
  const format = 'format' in field ? FORMATS[field.format ?? ''] : undefined;
  return format && why?.startsWith('must match format') ? `must be ${format}` : why;
}

/** The server's words behind a bar; then, in ours, what may be typed, and in brackets what the empty line means. */
function questionOf({ output }: Dialog, field: Field, suggested: Value): { head: string[]; prompt: string } {
  const bar = output.paint('dim', '│');
  const { title, description } = field;
  const label = folded(`${oneLine(title)}${description ? ` (${oneLine(description)})` : ''}`, output.width - 2);
  const choices = numbered(field).map((line) => cut(line, output.width - 2));
  const ours = [hintOf(field), enterOf(field, suggested)].filter(Boolean).join(' ');
  const [only = '', ...more] = [...label, ...choices];
  const isRoomy = more.length === 0 && only.length + ours.length + ROOM <= output.width;
  if (isRoomy) return { head: [], prompt: `${bar} ${only}${ours && ` ${ours}`}: ` };
  return { head: [only, ...more].map((line) => `${bar} ${line}`), prompt: `  ${ours}: ` };
}

function numbered(field: Field): string[] {
  if (!('choices' in field)) return [];
  return field.choices.map(({ value }, index) => {
    const text = valueText(field, field.type === 'choice' ? value : [value]);
    return `${String(index + 1).padStart(3)}  ${text}`;
  });
}

function enterOf(field: Field, suggested: Value): string {
  if (suggested !== undefined) return `[${cut(valueText(field, suggested), LONGEST_SUGGESTION)}]`;
  return field.isRequired ? '' : '[leave out]';
}

function hintOf(field: Field): string {
  switch (field.type) {
    case 'string':
      return [FORMATS[field.format ?? ''], range(field.minLength, field.maxLength, 'characters')]
        .filter(Boolean)
        .join(', ');
    case 'number':
    case 'integer':
      return range(field.minimum, field.maximum, '');
    case 'boolean':
      return 'y or n';
    case 'choice':
      return 'a number';
    case 'choices':
      return ['numbers, with commas between', range(field.minItems, field.maxItems, 'of them')]
        .filter(Boolean)
        .join(', ');
  }
}

const FORMATS: Record<string, string> = {
  email: 'an e-mail address',
  uri: 'an address like https://example.com',
  date: 'a date like 2025-12-31',
  'date-time': 'a time like 2025-12-31T12:00:00Z',
};

function range(least: number | undefined, most: number | undefined, unit: string): string {
  const numbers =
    least === undefined
      ? most !== undefined && `at most ${most}`
      : most === undefined
        ? `at least ${least}`
        : `${least} to ${most}`;
  return numbers ? `${numbers} ${unit}`.trim() : '';
}

/** `undefined` leaves the field out. */
export type Value = string | number | boolean | null | readonly string[] | undefined;
type Read = { readonly value: Value } | { readonly problem: string };

/** The value that was typed; whether it is allowed is left to the validator. `suggested` is the value in brackets. */
export function readValue(field: Field, typed: string, suggested: Value): Read {
  const text = typed.trim();
  if (text === '' && suggested !== undefined) return { value: suggested };
  if (text === '') return emptyValue(field);
  // The empty line takes the value in brackets, so that another sign must mean no value.
  if (text === CLEAR && suggested !== undefined && !field.isRequired) return { value: undefined };
  if (text === CLEAR && field.isRequired)
    return { problem: `It is required${field.type === 'string' ? `; type "${CLEAR}" for that sign` : ''}.` };
  switch (field.type) {
    case 'string':
      return { value: EMPTY_TEXTS[text] ?? text };
    case 'number':
    case 'integer':
      return numberValue(field.type, text);
    case 'boolean':
      return booleanValue(text);
    case 'choice':
      return choiceValue(field.choices, text);
    case 'choices':
      return choicesValue(field.choices, text);
  }
}

export const CLEAR = '-';
/** How to type an empty text, and the sign that clears. */
const EMPTY_TEXTS: Record<string, string> = { '""': '', '"-"': '-' };

function emptyValue({ type, isRequired, isNullable }: Field): Read {
  if (!isRequired) return { value: undefined };
  if (isNullable) return { value: null };
  return { problem: type === 'string' ? 'It is required; type "" for an empty text.' : 'It is required.' };
}

function numberValue(type: 'number' | 'integer', text: string): Read {
  const value = Number(text);
  const isNumber = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(text) && Number.isFinite(value);
  if (!isNumber) return { problem: `That is no number; type one like ${type === 'integer' ? '42' : '3.14'}.` };
  if (Number.isInteger(value) && !Number.isSafeInteger(value))
    return { problem: 'That number is too large to be sent exactly.' };
  return type === 'integer' && !Number.isInteger(value) ? { problem: 'It must be a whole number.' } : { value };
}

function booleanValue(text: string): Read {
  if (/^(y|yes|true)$/i.test(text)) return { value: true };
  if (/^(n|no|false)$/i.test(text)) return { value: false };
  return { problem: 'Type y or n.' };
}

/** By its value, by the number before it, or by its title. */
function choiceValue(choices: readonly Choice[], text: string, hint = 'a number from 1 to %'): Read {
  const byNumber = /^\d+$/.test(text) ? choices[Number(text) - 1] : undefined;
  const byTitle = choices.filter(({ title }) => title.toLowerCase() === text.toLowerCase());
  const chosen =
    choices.find(({ value }) => value === text) ?? byNumber ?? (byTitle.length === 1 ? byTitle[0] : undefined);
  if (chosen) return { value: chosen.value };
  const how = hint.replace('%', String(choices.length));
  return { problem: `${oneLine(JSON.stringify(text))} is none of them; type ${how}.` };
}

function choicesValue(choices: readonly Choice[], text: string): Read {
  const values: string[] = [];
  for (const part of text.split(',').filter((each) => each.trim() !== '')) {
    const read = choiceValue(choices, part.trim(), 'numbers from 1 to %, with commas');
    if ('problem' in read) return read;
    if (!values.includes(String(read.value))) values.push(String(read.value));
  }
  return { value: values };
}

/** As it stands in brackets and in the review. */
export function valueText(field: Field, value: Value): string {
  if (value === undefined) return '(left out)';
  if (value === null) return '(nothing)';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (field.type === 'choice') return choiceText(field.choices, String(value));
  if (Array.isArray(value) && 'choices' in field)
    return value.map((each) => choiceText(field.choices, each)).join(', ') || '(none of them)';
  return value === '' ? '""' : oneLine(String(value));
}

function choiceText(choices: readonly Choice[], value: string): string {
  const title = choices.find((choice) => choice.value === value)?.title ?? value;
  return oneLine(title === value ? value : `${title} (${value})`);
}
