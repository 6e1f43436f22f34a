// A host's own file, which the host may be writing at the same time: it is replaced in one step, and only if it is still as
// it was read. The text before the change is kept in a backup beside it.

import { constants, copyFileSync, mkdirSync, realpathSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { readRegular } from '../../files/regular.ts';
import { sentence, TroupeError } from '../../protocol/failures.ts';
import { replaceFile } from '../file/replace.ts';

/** The text of the file; the empty text if there is none. */
export function readHostFile(path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readRegular(path));
  } catch (error) {
    if (isMissing(error)) return '';
    const why = error instanceof TypeError ? 'it is not UTF-8 text' : sentence(error);
    throw new TroupeError('invalid', `${path} cannot be read: ${why}; nothing was changed`);
  }
}

/** Writes the text if the file still holds `before`, and returns the path of the backup; a new file has none. */
export function replaceHostFile(path: string, before: string, text: string): string | undefined {
  if (readHostFile(path) !== before)
    throw new TroupeError('busy', `${path} has changed in the meantime; close the host and try again`);
  try {
    return replace(path, text);
  } catch (error) {
    throw new TroupeError('internal', `${path} cannot be written: ${sentence(error)}; nothing was changed`);
  }
}

function replace(path: string, text: string): string | undefined {
  mkdirSync(dirname(path), { recursive: true });
  const found = statSync(path, { throwIfNoEntry: false });
  // A link (dotfiles, say) stays one: the file is replaced where it really lies.
  const file = found ? realpathSync(path) : path;
  const backup = found && `${file}.troupe-backup-${new Date().toISOString().replaceAll(/[:.]/g, '-')}`;
  if (backup) copyFileSync(file, backup, constants.COPYFILE_EXCL);
  replaceFile(file, text, found ? found.mode & 0o777 : 0o600);
  return backup;
}

const isMissing = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'ENOENT';
