// The NATS client makes a text, three arrays and a copy of each message that it sends. Nearly all of ours are small and without
// headers: such a one is written as bytes into a slab, and the client is given the part of the slab that the message has become.

import type { NatsConnection } from 'nats';

const SLAB_BYTES = 65_536;
/** A larger message is not worth a copy. */
const SMALL_BYTES = 4_096;
/** What stands around subject and payload. */
const LINE_BYTES = 32;
const MAX_UTF8 = 3;
const RETURN = 0x0d;
const NEWLINE = 0x0a;

type Options = { readonly reply?: string; readonly headers?: unknown };
/** What of the client's insides is used: whatever it publishes it counts, and passes on as bytes. */
type Protocol = {
  readonly info?: { readonly max_payload: number };
  outBytes: number;
  outMsgs: number;
  publish(subject: string, payload?: Uint8Array | string, options?: Options): void;
  sendCommand(bytes: Uint8Array): void;
};

export function slabbed(nc: NatsConnection): NatsConnection {
  const { protocol } = nc as unknown as { protocol: Protocol };
  const publish = protocol.publish.bind(protocol);
  const written = messages();

  protocol.publish = (subject, payload, options) => {
    const isPlain = payload instanceof Uint8Array && !options?.headers && !options?.reply;
    if (!isPlain || payload.length > Math.min(SMALL_BYTES, protocol.info?.max_payload ?? 0))
      return publish(subject, payload, options);
    protocol.outBytes += payload.length;
    protocol.outMsgs++;
    protocol.sendCommand(written(subject, payload));
  };
  return nc;
}

/** Nothing is written twice into a slab: the client may hold parts of it for as long as the broker is away. */
function messages() {
  let slab = Buffer.alloc(0);
  let free = 0;

  return (subject: string, payload: Uint8Array): Uint8Array => {
    const most = subject.length * MAX_UTF8 + payload.length + LINE_BYTES;
    if (free + most > slab.length) {
      slab = Buffer.allocUnsafeSlow(Math.max(SLAB_BYTES, most));
      free = 0;
    }
    const from = free;
    free += slab.write(`PUB ${subject} ${payload.length}\r\n`, free);
    slab.set(payload, free);
    free += payload.length;
    slab[free++] = RETURN;
    slab[free++] = NEWLINE;
    return slab.subarray(from, free);
  };
}
