// What a host shows of a call that waits, and what it may say: a person sees all of it or is not asked, and nothing that we
// have checked reads otherwise to the server.

import { expect, it } from 'vitest';
import type { Question } from '../../src/asks/ask.ts';
import { askedOf, spokenBy } from '../../src/asks/host.ts';

const approval = (args: string): Question => ({ kind: 'approval', message: 'm', arguments: Buffer.from(args) });
const FORM: Question = { kind: 'elicitation', mode: 'form', message: 'm', schema: Buffer.from('{}') };
const SAMPLING: Question = { kind: 'sampling', message: 'm', request: Buffer.from('{}') };
const shown = (args: string, tool = 'wipe') => {
  const asked = askedOf(approval(args), { server: 'danger', tool });
  return asked && JSON.parse(asked.params.toString());
};

it('shows the tool, its server and the whole arguments as a form without fields', () => {
  const args = JSON.stringify({ text: 'x'.repeat(16_000), path: '/etc' });
  expect(shown(args)).toEqual({
    message: `Approve this call? The tool wipe of the server danger would run with these arguments: ${args}`,
    requestedSchema: { type: 'object', properties: {} },
  });
});

it('does not ask a host that would show a part only', () => {
  const long = (length: number) => `{"a":"${'x'.repeat(length - 8)}"}`;
  expect(shown(long(16_380))).toBeDefined();
  expect(shown(long(16_381))).toBeUndefined(); // the name of the tool is shown too
  expect(shown('{}', 'x'.repeat(16_384))).toBeUndefined();
});

it('shows no control characters of the tool or of its arguments', () => {
  const { message } = shown('{"a":"\u009b2J\u007f","b":"é"}', 'wi\u001b[2Jpe\n\nof');
  expect(message).toContain('The tool wi\ufffd[2Jpe of of the server danger');
  expect(message).toContain('{"a":"\ufffd2J\ufffd","b":"é"}');
});

it('asks a server’s own question in its own bytes, and to visit an address in ours', () => {
  const asked = { method: 'elicitation/create', params: Buffer.from('{"message":"\u009b"}') };
  expect(askedOf(FORM, { asked, server: 'danger', tool: 'wipe' })).toBe(asked);
  const url = { mode: 'url' as const, url: 'https://example.com/', elicitationId: 'e', isRequired: true };
  const visit = askedOf({ kind: 'elicitation', message: 'Log in', ...url }, { server: 'danger', tool: 'wipe' });
  expect(JSON.parse(String(visit?.params))).toEqual({
    ...{ mode: 'url', message: 'danger says: Log in', url: 'https://example.com/', elicitationId: 'e' },
  });
});

it.each([
  [FORM, '{"action":"accept","content":{"a":1},"content":{"a":2}}'],
  [FORM, '{"action":"accept","content":{"a":1},"c\\u006fntent":{"a":2}}'],
  [FORM, '{"action":"accept","action":"decline","content":{}}'],
  [FORM, '{"action":"decline","content":{},"content":{}}'],
  [approval('{}'), '{"action":"decline","action":"accept"}'],
  [SAMPLING, '{"role":"assistant","model":"m","content":{"type":"text","text":"a"},"content":{}}'],
])('hears nothing in an answer that says two things at once', (question, result) => {
  expect(spokenBy(question, { ok: true, result: Buffer.from(result) })).toBeUndefined();
});

it('hears what a host says once', () => {
  const say = (question: Question, result: string) => spokenBy(question, { ok: true, result: Buffer.from(result) });
  const content = Buffer.from('{"a":1}');
  expect(say(FORM, '{"action":"accept","content":{"a":1}}')).toEqual({ action: 'accept', content });
  expect(say(approval('{}'), '{"action":"accept","content":{}}')).toEqual({ action: 'accept' });
  expect(say(FORM, '{"action":"decline"}')).toEqual({ action: 'decline' });
  expect(say(SAMPLING, '{"content":{}}')).toEqual({ action: 'accept', content: Buffer.from('{"content":{}}') });
});
