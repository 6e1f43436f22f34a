// Bodies that do not fit into a message lie in a JetStream object store for ten minutes, under an unguessable name.
// The store is opened when first needed: without JetStream only such bodies are refused.

import { randomBytes } from 'node:crypto';
import { type NatsConnection, nanos, type ObjectStore } from 'nats';
import { sentence, TroupeError } from '../protocol/failures.ts';

export const BUCKET = 'troupe_blobs';
const TTL_MS = 10 * 60_000;

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
      // Only this bucket: the daemon may read others that the caller may not.
      if (bucket !== BUCKET || !name || rest.length > 0)
        throw new TroupeError('invalid', `Troupe-Object must be ${BUCKET}/<name>; put the arguments there first.`);
      const found = await withStore(async (store) => {
        const info = await store.info(name);
        if (info && info.size > maxBytes) return info.size;
        return info ? store.getBlob(name) : null;
      }).catch((cause) => {
        const message = `The object ${reference} cannot be read (${sentence(cause)}); send it again or try later.`;
        throw new TroupeError('unavailable', message, { cause });
      });
      if (found === null)
        throw new TroupeError('invalid', `There is no object ${reference}; it is kept for ten minutes, put it again.`);
      if (typeof found === 'number')
        throw new TroupeError('tooLarge', `The object ${reference} has ${found} bytes; the limit is ${maxBytes}.`);
      return Buffer.from(found.buffer, found.byteOffset, found.byteLength);
    },
  };
}
