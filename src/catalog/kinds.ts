// The things a server offers, and how MCP lists each: read from the table of methods.

import { type Kind, methodNames, rowOf } from '../protocol/methods.ts';

export type { Kind } from '../protocol/methods.ts';

type Listed = {
  readonly method: string;
  /** The member of the result that holds the definitions. */
  readonly member: string;
  /** The member of a definition that names it. */
  readonly key: 'name' | 'uri' | 'uriTemplate';
};

export const KINDS = Object.fromEntries(
  methodNames.flatMap((method) => {
    const { kind, member, key } = rowOf(method)?.lists ?? {};
    return kind ? [[kind, { method, member, key }]] : [];
  }),
) as Readonly<Record<Kind, Listed>>;

export const ALL_KINDS = Object.keys(KINDS) as readonly Kind[];
export const isKind = (text: string): text is Kind => Object.hasOwn(KINDS, text);
