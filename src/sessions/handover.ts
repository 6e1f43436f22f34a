// Two daemons on one state directory may serve one session at once: a cancellation or an answer may then come to the daemon
// that does not have the call. That daemon hands the message to the others over the bus, sealed with the key of the directory,
// so that no other program can read or make one. The daemon that knows the id acts on it.

import type { NatsConnection, Subscription } from 'nats';
import { errorFrame, notificationFrame, resultFrame } from '../protocol/compose.ts';
import { type Frame, readFrame } from '../protocol/frame.ts';
import { member, stringOf } from '../protocol/json.ts';
import type { Seal } from '../store/seal.ts';
import type { LocalSession } from './session.ts';

export type HandoverOptions = {
  /** Only daemons on the same state directory meet there. */
  readonly subject: string;
  readonly seal: Seal;
  readonly local: (id: string, principal: string) => LocalSession | undefined;
  readonly onTrouble: (error: unknown) => void;
};

export function createHandover({ subject, seal, local, onTrouble }: HandoverOptions) {
  let connection: NatsConnection | undefined;
  let subscription: Subscription | undefined;

  function take(sealed: Uint8Array): void {
    const data = Buffer.from(seal.open(sealed, subject) ?? '{}');
    const [session, principal] = [member(data, 'session'), member(data, 'principal')].map(
      (each) => each && stringOf(each),
    );
    const line = member(data, 'frame');
    if (session && principal && line) local(session, principal)?.takeOver(readFrame(line));
  }

  return {
    online(nc: NatsConnection): void {
      subscription?.unsubscribe();
      connection = nc;
      subscription = nc.subscribe(subject, {
        callback: (error, msg) => {
          if (error) onTrouble(error);
          else take(msg.data);
        },
      });
    },
    handOver(session: string, principal: string, frame: Frame): void {
      const bytes = bytesOf(frame);
      if (!bytes || !connection || connection.isClosed()) return;
      const head = JSON.stringify({ session, principal }).slice(0, -1);
      const message = seal.seal(`${head},"frame":${bytes}}`, subject);
      try {
        if (message.length <= (connection.info?.max_payload ?? 0)) connection.publish(subject, message);
      } catch (error) {
        onTrouble(error); // the bus went away this very moment
      }
    },
    close: () => subscription?.unsubscribe(),
  };
}

function bytesOf(frame: Frame): Buffer | undefined {
  if (frame.kind === 'notification') return notificationFrame(frame.method, frame.params).subarray(0, -1);
  if (frame.kind === 'result') return resultFrame(frame.id, frame.result).subarray(0, -1);
  return frame.kind === 'error' ? errorFrame(frame.id, frame.error).subarray(0, -1) : undefined;
}
