// Reads what can be chosen, in each of the ways that MCP has had for it: enum, enum with enumNames, and const with title
// in oneOf or anyOf. Choices are texts.

import type { Choice } from './form.ts';
import { isObject } from './words.ts';

const MAX_CHOICES = 1_000;

/** Nothing when the schema names no choices; a string is why they cannot be had. */
export function readChoices(schema: Record<string, unknown>): Choice[] | string | undefined {
  const ways = WAYS.filter((way) => schema[way] !== undefined);
  const [way, another] = ways;
  if (!way) return undefined;
  if (another) return `its choices must be given once, not as ${way} and as ${another}`;
  const listed = way === 'const' ? [schema.const] : schema[way];
  if (!Array.isArray(listed) || listed.length === 0) return `its ${way} must be a list of choices`;
  if (listed.length > MAX_CHOICES) return `it must not have more than ${MAX_CHOICES} choices`;
  if (schema.type !== undefined && schema.type !== 'string') return 'its choices must be texts';
  return way === 'oneOf' || way === 'anyOf' ? titled(listed, way) : named(listed, schema.enumNames);
}

export const WAYS = ['enum', 'const', 'oneOf', 'anyOf'] as const;

function named(values: readonly unknown[], names: unknown): Choice[] | string {
  if (!values.every((value) => typeof value === 'string')) return 'its choices must be texts';
  const titles: unknown[] = Array.isArray(names) ? names : [];
  return unique(values.map((value, index) => ({ value, title: textOr(titles[index], value) })));
}

function titled(listed: readonly unknown[], way: string): Choice[] | string {
  const choices: Choice[] = [];
  for (const each of listed) {
    if (!isObject(each) || typeof each.const !== 'string')
      return `its ${way} must be a list of texts, as const and title`;
    choices.push({ value: each.const, title: textOr(each.title, each.const) });
  }
  return unique(choices);
}

const textOr = (title: unknown, value: string): string => (typeof title === 'string' && title !== '' ? title : value);

const unique = (choices: readonly Choice[]): Choice[] =>
  [...new Map(choices.toReversed().map((choice) => [choice.value, choice])).values()].toReversed();
