// Where the system will find a command: what `execvp` does, asked beforehand.

import { accessSync, closeSync, constants, openSync, readSync, statSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';

/** The path of the program, if it may be run. */
export function findCommand(command: string, cwd: string | undefined, path: string): string | undefined {
  const from = cwd ?? '.';
  if (command.includes('/')) return [resolve(from, command)].find(isExecutable);
  const folders = path.split(delimiter).filter((folder) => folder !== '');
  return folders.map((folder) => resolve(from, join(folder, command))).find(isExecutable);
}

/** Whether the program that a script names in its first line is there; a binary needs none. */
export function hasInterpreter(program: string): boolean {
  const [, interpreter] = /^#!\s*([^\s\0]+)/.exec(beginningOf(program)) ?? [];
  return interpreter === undefined || isExecutable(interpreter);
}

const LONGEST_FIRST_LINE = 256;

function beginningOf(program: string): string {
  let file: number;
  try {
    file = openSync(program, 'r');
  } catch {
    return ''; // it may be run, but not read: then it is no script
  }
  const bytes = Buffer.alloc(LONGEST_FIRST_LINE);
  const count = readSync(file, bytes);
  closeSync(file);
  return bytes.toString('latin1', 0, count);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false; // not in this folder
  }
}
