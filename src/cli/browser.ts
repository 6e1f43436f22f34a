// Opens an address in the person's browser. It is the word of a stranger: without a shell, and only for what a browser is for.

import { spawn } from 'node:child_process';
import { urlOf } from '../config/addresses.ts';

export const NO_BROWSER = 'no browser could be started here; open the address yourself';

/** An opener that has not failed by then is a browser that runs. */
const SOON_MS = 2_000;

/** Resolves with whether one seems to have been started. */
export function openBrowser(url: string): Promise<boolean> {
  const parsed = urlOf(url);
  if (parsed?.protocol !== 'https:' && parsed?.protocol !== 'http:') return Promise.resolve(false);
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open';
  const child = spawn(program, [parsed.href], { stdio: 'ignore', detached: true });
  child.unref();
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(true), SOON_MS);
    const settle = (isOpen: boolean): void => {
      clearTimeout(timer);
      resolve(isOpen);
    };
    child.on('error', () => settle(false));
    child.on('exit', (code) => settle(code === 0));
  });
}
