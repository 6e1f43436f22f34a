// Programs of the person that are started for them: the editor, with JSON in a private file that is removed afterwards, and
// the browser.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { urlOf } from '../../config/addresses.ts';
import { sentence } from '../../protocol/failures.ts';
import { isJsonObject } from '../../protocol/json.ts';
import type { Dialog } from './dialog.ts';

/** The JSON object that the editor saved; nothing when the person leaves the value as it was. */
export async function edited(dialog: Dialog, value: object, env: NodeJS.ProcessEnv): Promise<Buffer | undefined> {
  const directory = mkdtempSync(join(tmpdir(), 'troupe-edit-')); // 0700, as mkdtemp makes them
  const file = join(directory, 'edit.json');
  try {
    writeFileSync(file, `${JSON.stringify(value, undefined, 2)}\n`, { mode: 0o600, flag: 'wx' });
    for (;;) {
      const problem = (await dialog.lend(() => runEditor(file, env))) ?? complaint(file);
      if (problem === undefined) return readFileSync(file);
      dialog.say(problem);
      if ((await dialog.choose('[e]dit again, or [l]eave it as it was: ', ['edit', 'leave'])) === 'leave')
        return undefined;
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** VISUAL and EDITOR hold a command with its options, so a shell reads them; the file's name is passed as an argument. */
function runEditor(file: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const editor = env.VISUAL || env.EDITOR || 'vi';
  return new Promise((resolve) => {
    const child = spawn('/bin/sh', ['-c', `${editor} "$1"`, 'sh', file], { stdio: 'inherit' });
    child.once('error', (error) =>
      resolve(`The editor could not be started: ${sentence(error)}; EDITOR names another.`),
    );
    child.once('exit', (code) =>
      resolve(
        code === 0 ? undefined : `The editor \`${editor}\` ended with ${code ?? 'a signal'}; EDITOR names another.`,
      ),
    );
  });
}

function complaint(file: string): string | undefined {
  try {
    const text = readFileSync(file);
    JSON.parse(text.toString());
    return isJsonObject(text) ? undefined : 'It must stay a JSON object.';
  } catch (error) {
    return `That is no JSON: ${sentence(error)}.`;
  }
}

export const NO_BROWSER = 'no browser could be started here; open the address yourself';

/** An opener that has not failed by then has started a browser. */
const SOON_MS = 2_000;

/** Resolves with whether a browser seems to run. The address comes from a server: no shell sees it, and only http(s) is opened. */
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
