// One field of a form: what the server calls it, what it may be, and the question until the answer is allowed.

import { type Field, schemaOf } from '../asks/forms/form.ts';
import type { Validator } from '../asks/forms/validator.ts';
import type { Dialog } from './answer-dialog.ts';
import { folded, oneLine } from './answer-words.ts';
import { readValue, type Value, valueText } from './form-values.ts';
import { cut } from './table.ts';

/** Room for the answer behind the question. */
const ROOM = 16;
const LONGEST_KEPT = 40;

export type FieldAsked = {
  readonly dialog: Dialog;
  readonly validator: Validator;
  readonly field: Field;
  readonly kept: Value;
};

export async function askField({ dialog, validator, field, kept }: FieldAsked): Promise<Value> {
  const { head, prompt } = questionOf(dialog, field, kept);
  for (const line of head) dialog.say(line);
  for (;;) {
    const read = readValue(field, await dialog.ask(prompt), kept);
    if ('problem' in read) dialog.complain(`  ${read.problem}`);
    else {
      const problem = await problemWith(validator, field, read.value);
      if (problem === undefined) return read.value;
      dialog.complain(`  It ${problem}.`);
    }
  }
}

/** Judged by the one who judges the whole form in the end, in a thread: a server's pattern may never come to an end. */
async function problemWith(validator: Validator, field: Field, value: Value): Promise<string | undefined> {
  if (value === undefined) return undefined;
  const json = (each: object): Buffer => Buffer.from(JSON.stringify(each));
  const problem = await validator.check(json(schemaOf({ fields: [field] })), json({ [field.name]: value }));
  const why = problem?.startsWith(`${field.name}: `) ? problem.slice(field.name.length + 2) : problem;
  const format = 'format' in field ? FORMATS[field.format ?? ''] : undefined;
  return format && why?.startsWith('must match format') ? `must be ${format}` : why;
}

/** The server's words stand behind a bar; ours are what may be typed, and in brackets what the empty line means. */
function questionOf({ output }: Dialog, field: Field, kept: Value): { head: string[]; prompt: string } {
  const bar = output.paint('dim', '│');
  const { title, description } = field;
  const label = folded(`${oneLine(title)}${description ? ` (${oneLine(description)})` : ''}`, output.width - 2);
  const choices = numbered(field).map((line) => cut(line, output.width - 2));
  const ours = [hintOf(field), enterOf(field, kept)].filter(Boolean).join(' ');
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

function enterOf(field: Field, kept: Value): string {
  if (kept !== undefined) return `[${cut(valueText(field, kept), LONGEST_KEPT)}]`;
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
