// Bodies that do not fit into a message lie in a JetStream object store for ten minutes, under an unguessable name.
// The store is opened when first needed: without JetStream only such bodies are refused.

import { randomBytes } from 'node:crypto';
import { type NatsConnection, nanos, type ObjectStore } from 'nats';
import { sentence, TroupeError } from '../protocol/failures.ts';

export const BUCKET = 'troupe_blobs';
const TTL_MS = 10 * 60_000;
const MAX_OBJECT_NAME = 128;
const READ_MS = 60_000;

export type Stored = {
  readonly bucket: string;
  readonly object: string;
  readonly size: number;
  readonly digest: string;
};
export type Blobs = ReturnType<typeof blobs>;

export function blobs(nc: NatsConnection, chunkBytes: () => number) {
  let opened: Promise<ObjectStore> | undefined;

  /** The store is opened once, and again after a failure: the broker may have been restarted. */
  async function withStore<Value>(work: (store: ObjectStore) => Promise<Value>): Promise<Value> {
    opened ??= nc.jetstream().views.os(BUCKET, { ttl: nanos(TTL_MS) });
    try {
      return await work(await opened);
    } catch (error) {
      opened = undefined;
      throw error;
    }
  }

  return {
    put: (bytes: Uint8Array): Promise<Stored> =>
      withStore(async (store) => {
        const name = randomBytes(16).toString('base64url');
        const { size, digest } = await store.putBlob({ name, options: { max_chunk_size: chunkBytes() } }, bytes);
        return { bucket: BUCKET, object: name, size, digest };
      }),

    /** The object that a header `Troupe-Object: bucket/name` refers to. */
    async get(reference: string, maxBytes: number): Promise<Buffer> {
      const [bucket, name, ...rest] = reference.split('/');
      // Only this bucket: the daemon may read others that the caller may not. The name becomes a part of a subject.
      if (bucket !== BUCKET || !name || name.length > MAX_OBJECT_NAME || rest.length > 0) throw misplaced();
      const found = await withStore((store) => fetchObject(store, name, maxBytes)).catch((cause) => {
        if (cause instanceof TroupeError) throw cause;
        const message = `The object ${reference} cannot be read (${sentence(cause)}); send it again or try later.`;
        throw new TroupeError('unavailable', message, { cause });
      });
      if (found === null)
        throw new TroupeError('invalid', `There is no object ${reference}; it is kept for ten minutes, put it again.`);
      if (typeof found === 'number')
        throw new TroupeError('tooLarge', `The object ${reference} has ${found} bytes; the limit is ${maxBytes}.`);
      return found;
    },
  };
}

const misplaced = (): TroupeError =>
  new TroupeError(
    'invalid',
    `Troupe-Object must be ${BUCKET}/<name>, an object there with a name of at most ${MAX_OBJECT_NAME} characters; put the arguments there first.`,
  );

/** The object, or how large it is if that is too large. What is told of an object is the word of whoever put it there. */
async function fetchObject(store: ObjectStore, name: string, maxBytes: number): Promise<Buffer | number | null> {
  const info = await store.info(name);
  if (info?.options?.link) throw misplaced(); // it leads to another bucket, and reading it would make that bucket
  if (info && info.size > maxBytes) return info.size;
  const object = info && (await store.get(name));
  if (!object) return null;
  object.error.catch(() => {}); // the reader is told the same
  if (object.info.name !== name) throw misplaced(); // it has become a link meanwhile
  const reader = object.data.getReader();
  const tooSlow = setTimeout(() => void reader.cancel(), READ_MS).unref();
  try {
    return await readTo(reader, info.size, maxBytes);
  } finally {
    clearTimeout(tooSlow);
    reader.cancel().catch(() => {}); // it has failed, and its reader was told
  }
}

type Reader = { read(): Promise<{ done: boolean; value?: Uint8Array | undefined }> };

async function readTo(reader: Reader, size: number, maxBytes: number): Promise<Buffer | number> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    bytes += next.value?.length ?? 0;
    if (bytes > maxBytes) return bytes;
    if (next.value) parts.push(next.value);
  }
  if (bytes !== size) throw new Error(`${bytes} of its ${size} bytes came`);
  return Buffer.concat(parts);
}
