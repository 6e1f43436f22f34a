import { expect, test } from 'vitest';
import { nearest } from '../../src/config/names.ts';

const tools = Array.from({ length: 500 }, (_, i) => `some_tool_with_a_rather_long_name_${i}`);

test.each([
  ['ecoh', ['echo', 'get-sum'], 'echo'],
  ['timeout', ['timeoutMs', 'maxTimeoutMs'], 'timeoutMs'],
  ['nothing-like-it', ['echo'], undefined],
])('%j among %j is probably %j', (word, words, expected) => {
  expect(nearest(word, words)).toBe(expected);
});

// Compared letter by letter this would take hours, and the test its time limit.
test('a word that nobody would have mistyped is not compared at all, however long it is', () => {
  expect(nearest('x'.repeat(1_000_000), tools)).toBeUndefined();
});
