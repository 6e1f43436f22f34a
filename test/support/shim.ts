// `troupe connect` by hand: lines in, lines out, and what it says to people.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { expect } from 'vitest';
import { MAIN } from './daemon.ts';
import { eventually } from './eventually.ts';

export function startShim(env: NodeJS.ProcessEnv, ...words: string[]) {
  const child = spawn(process.execPath, [MAIN, 'connect', ...words], { env, stdio: 'pipe' });
  const lines: any[] = [];
  let said = '';
  createInterface(child.stdout).on('line', (line) => lines.push(JSON.parse(line)));
  child.stderr.on('data', (chunk) => {
    said += chunk;
  });
  const exit = new Promise<number | null>((resolve) => child.once('close', resolve));
  const send = (...frames: object[]) => {
    for (const frame of frames) child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);
  };
  const answers = (id: unknown) => lines.filter((line) => line.id === id);
  const answer = (id: unknown) =>
    eventually(() => expect(answers(id)).toHaveLength(1), 20_000).then(() => answers(id)[0]);
  return { child, lines, exit, send, answer, answers, said: () => said };
}
export const INITIALIZE = {
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'hand', version: '1' } },
};
export const call = (id: unknown, name: string, args: object = {}) => ({
  ...{ id, method: 'tools/call', params: { name, arguments: args } },
});
