// Encryption at rest: AES-256-GCM under a key of this state directory, which all its daemons share. A value sealed for one
// row cannot be opened as that of another: the name of the row is authenticated with it.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { readOwn } from '../files/own.ts';
import { sentence, TroupeError } from '../protocol/failures.ts';
import { random } from '../world/random.ts';

export type Seal = {
  seal(text: string | Uint8Array, name: string): Buffer;
  /** Undefined when the key is another one, or the bytes were changed. */
  open(sealed: Uint8Array, name: string): string | undefined;
  openBytes(sealed: Uint8Array, name: string): Buffer | undefined;
};

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const VERSION = 1;
const HEAD = Buffer.of(VERSION);

/** The key is made at its first use. */
export function openSeal(directory: string): Seal {
  let key: Buffer | undefined;
  const theKey = () => {
    key ??= keyIn(directory);
    return key;
  };
  const seal: Seal = {
    seal(text, name) {
      const nonce = random(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', theKey(), nonce).setAAD(Buffer.from(name));
      const body = typeof text === 'string' ? cipher.update(text, 'utf8') : cipher.update(text);
      cipher.final(); // GCM has no last block; this computes the tag
      return Buffer.concat([HEAD, nonce, cipher.getAuthTag(), body]);
    },
    open: (sealed, name) => seal.openBytes(sealed, name)?.toString('utf8'),
    openBytes(sealed, name) {
      const bytes = Buffer.from(sealed);
      const [nonceEnd, tagEnd] = [1 + NONCE_BYTES, 1 + NONCE_BYTES + TAG_BYTES];
      if (bytes[0] !== VERSION || bytes.length < tagEnd) return undefined;
      try {
        const options = { authTagLength: TAG_BYTES };
        const decipher = createDecipheriv('aes-256-gcm', theKey(), bytes.subarray(1, nonceEnd), options);
        decipher.setAAD(Buffer.from(name)).setAuthTag(bytes.subarray(nonceEnd, tagEnd));
        return Buffer.concat([decipher.update(bytes.subarray(tagEnd)), decipher.final()]);
      } catch (error) {
        if (error instanceof TroupeError) throw error;
        return undefined; // another key, or changed bytes
      }
    },
  };
  return seal;
}

function keyIn(directory: string): Buffer {
  const path = join(directory, 'seal.key');
  try {
    if (readOwn(path) === undefined) makeKey(path);
    const key = readOwn(path);
    if (key?.length === KEY_BYTES) return key;
  } catch (error) {
    if (error instanceof TroupeError) throw error;
    throw new TroupeError('unavailable', `The key ${path} cannot be used (${sentence(error)}): make it yours.`);
  }
  throw new TroupeError('invalid', `The key ${path} is damaged: remove it, and log in to your servers again.`);
}

/** Written to a draft, then linked: other processes see the whole key or none, and of two that make a key the first wins. */
function makeKey(path: string): void {
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  const file = openSync(draft, 'wx', 0o600);
  try {
    writeSync(file, randomBytes(KEY_BYTES));
    fsyncSync(file);
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    closeSync(file);
    rmSync(draft, { force: true });
  }
}
