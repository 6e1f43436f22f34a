// Opens an address in the person's browser. It is the word of a stranger: without a shell, and only for what a browser is for.

import { spawn } from 'node:child_process';
import { urlOf } from '../config/addresses.ts';

export function openBrowser(url: string): void {
  const parsed = urlOf(url);
  if (parsed?.protocol !== 'https:' && parsed?.protocol !== 'http:') return;
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open';
  const child = spawn(program, [parsed.href], { stdio: 'ignore', detached: true });
  child.on('error', () => {}); // there is no browser here; the URL is on the screen
  child.unref();
}
