import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Address, subjects } from '../../src/bus/subjects.ts';

const { parse, ...build } = subjects('troupe');
const server = fc.stringMatching(/^[a-z0-9_-]{1,63}$/);
const caller = fc.string({ unit: 'binary', minLength: 1, maxLength: 30 }).filter((name) => name !== '_');
const address: fc.Arbitrary<Address> = fc.oneof(
  fc.constant({}),
  fc.record({ caller }),
  fc.record({ node: fc.string({ minLength: 1, maxLength: 20 }) }),
);

test('answering a question and listing them are parsed into what they were built from, and matched by one pattern', () => {
  const id = fc.stringMatching(/^[A-Za-z0-9_-]{22}$/);
  fc.assert(
    fc.property(id, address, (one, to) => {
      const { caller = '_', node } = { caller: '_', ...to } as { caller?: string; node?: string };
      const who = { caller, ...(node !== undefined && { node }) };
      const [answer, inbox] = [build.answer(one, to), build.inbox(to)];
      expect(build.parseAsk(answer)).toEqual({ ...who, verb: 'answer', id: one });
      expect(build.parseAsk(inbox)).toEqual({ ...who, verb: 'inbox', id: '' });
      expect([parse(answer), parse(inbox), build.parseRpc(inbox)]).toEqual([undefined, undefined, undefined]);
      const patterns = build.askPatterns(node ?? 'host-1', 'f1');
      for (const subject of [answer, inbox])
        expect(patterns.filter((pattern) => matches(pattern.subject, subject))).toMatchObject([{ queue: 'troupe-f1' }]);
    }),
  );
});

test.each([
  'troupe.answer',
  'troupe.answer.a.b',
  'troupe.answer.a=20b',
  'troupe.inbox.a',
  'troupe.inbox.a.inbox',
  'troupe.as._.inbox',
  'troupe.as.alice',
  'troupe.ask._.elicitation.a',
])('nothing is answered or listed on %s', (subject) => expect(build.parseAsk(subject)).toBeUndefined());

test('a question is asked where exactly its caller, kind and server are spelled', () => {
  expect(build.ask('_', 'elicitation', 'gh')).toBe('troupe.ask._.elicitation.gh');
  fc.assert(
    fc.property(caller, caller, server, (mine, other, name) => {
      const [subject, pattern] = [build.ask(mine, 'sampling', name), build.ask(other, 'sampling', name)];
      expect(legal(subject)).toBe(true);
      expect(subject.split('.')).toHaveLength(5);
      expect(matches(pattern, subject)).toBe(mine === other);
    }),
  );
});

const legal = (subject: string) =>
  subject.split('.').every((token) => /^[\x21-\x7e]+$/.test(token) && !/[*>]/.test(token));

function matches(pattern: string, subject: string): boolean {
  const [want, have] = [pattern.split('.'), subject.split('.')];
  return want.length === have.length && want.every((token, i) => token === '*' || token === have[i]);
}
