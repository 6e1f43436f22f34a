// JSON in the person's own editor. The file is theirs alone while they edit it, and gone when they are done.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sentence } from '../protocol/failures.ts';
import { isJsonObject } from '../protocol/json.ts';
import type { Dialog } from './answer-dialog.ts';

/** What the editor left, if it is a JSON object; nothing when the person gave it up. */
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

/** The variables hold a command with its options, so a shell reads them; the file's name is not part of what it reads. */
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
