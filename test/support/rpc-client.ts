// A `NatsClientTransport` with an open session, everything it says kept, and the bus it lives on.

import type { NatsConnection } from 'nats';
import { NatsClientTransport, type NatsTransportOptions } from '../../src/nats-transport/transport.ts';
import { natsServer } from './nats.ts';
import { handSessions, openDoor } from './rpc.ts';

type Message = {
  id?: unknown;
  result?: { text?: string };
  error?: { message: string; data?: unknown };
  method?: string;
};

/** A transport with an open session, and everything it said. */
export async function joined(nc: NatsConnection, options: NatsTransportOptions = {}) {
  const transport = new NatsClientTransport(nc, { server: 'echo', ...options });
  const [messages, errors]: [Message[], string[]] = [[], []];
  let closed = 0;
  transport.onmessage = (message) => void messages.push(message as Message);
  transport.onerror = (error) => void errors.push(error.message);
  transport.onclose = () => void closed++;
  const send = (message: object) => transport.send({ jsonrpc: '2.0', ...message });
  await transport.start();
  await send({ id: 'init', method: 'initialize', params: { protocolVersion: '2025-11-25' } });
  const answers = () => messages.slice(1).filter(({ method }) => method === undefined);
  return { transport, messages, errors, send, answers, closed: () => closed };
}

export async function bus(options: { maxPayload?: number; leaseMs?: number } = {}) {
  const nats = await natsServer(options);
  const hand = handSessions();
  const door = await openDoor(nats, hand.sessions, { leaseMs: options.leaseMs ?? 60_000 });
  const nc = await nats.connect();
  return { nats, ...hand, door, nc, [Symbol.asyncDispose]: () => nats[Symbol.asyncDispose]() };
}
