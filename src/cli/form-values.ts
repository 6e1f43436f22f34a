// From what is typed into a field to the value that is sent, and from a value to what a person reads. Whether the value is
// allowed is the validator's business; here it is only read.

import type { Choice, Field } from '../asks/forms/form.ts';
import { oneLine } from './answer-words.ts';

/** `undefined` leaves the field out. */
export type Value = string | number | boolean | null | readonly string[] | undefined;
export type Read = { readonly value: Value } | { readonly problem: string };

/** `kept` is what stands in brackets: the default, or what was typed before. */
export function readValue(field: Field, typed: string, kept: Value): Read {
  const text = typed.trim();
  if (text === '' && kept !== undefined) return { value: kept };
  if (text === '') return emptyValue(field);
  // Where a value stands in brackets there must be a way to have none.
  if (text === CLEAR && kept !== undefined && !field.isRequired) return { value: undefined };
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
/** How to say what the empty line and the sign that clears cannot. */
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
  return { problem: `${JSON.stringify(oneLine(text))} is none of them; type ${how}.` };
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
