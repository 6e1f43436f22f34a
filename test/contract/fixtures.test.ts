// The fixtures keep their own promises: small enough to read at a glance, named for a sin they confess in line one,
// and the ones that others lean on answer the handshake.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const FOLDER = fileURLToPath(new URL('../fixtures/', import.meta.url));
const SHARED = ['base.mjs', 'wire.mjs', 'memos.mjs'];
const fixtures = readdirSync(FOLDER).filter((file) => file.endsWith('.mjs'));

describe.each(fixtures)('%s', (file) => {
  const lines = readFileSync(FOLDER + file, 'utf8')
    .trimEnd()
    .split('\n');

  test('has at most 30 lines', () => {
    expect(lines.length).toBeLessThanOrEqual(30);
  });

  test('says in its first line what it is', () => {
    expect(lines[0]).toMatch(SHARED.includes(file) ? /^\/\/ \S/ : /^\/\/ Sin: /);
  });
});

const HANDSHAKES = [
  ['echo.mjs', '2025-11-25', '2025-11-25'],
  ['resources.mjs', '2025-11-25', '2025-11-25'],
  ['old.mjs', '2024-11-05', '2025-11-25'],
  ['old.mjs', '2025-03-26', '2025-11-25'],
  ['old.mjs', '2025-06-18', '2025-11-25'],
  ['old.mjs', '2025-11-25', '2025-11-25'],
] as const;

test.each(HANDSHAKES)('%s speaks %s when asked for %s', async (file, version, asked) => {
  const answer = await firstAnswer(file, version, {
    id: 1,
    method: 'initialize',
    params: { protocolVersion: asked, capabilities: {}, clientInfo: { name: 'test', version: '1' } },
  });
  expect(answer).toMatchObject({ id: 1, result: { protocolVersion: version, capabilities: { tools: {} } } });
});

test('a server of 2025-03-26 answers in batches', async () => {
  const call = { id: 7, method: 'tools/call', params: { name: 'echo', arguments: { message: 'hi' } } };
  const answer = await firstAnswer('old.mjs', '2025-03-26', call);
  expect(answer).toEqual([{ jsonrpc: '2.0', id: 7, result: { content: [{ type: 'text', text: 'hi' }] } }]);
});

/** Starts the fixture, asks one thing, and ends it the polite way: it must leave when its stdin ends. */
async function firstAnswer(file: string, version: string, question: object): Promise<unknown> {
  const env = { ...process.env, VERSION: version };
  const child = spawn(process.execPath, [FOLDER + file], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  try {
    const line = once(createInterface({ input: child.stdout }), 'line');
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...question })}\n`);
    const [text] = await line;
    return JSON.parse(text);
  } finally {
    child.stdin.end();
    await exited;
  }
}
