// Calls a tool of a running daemon over NATS, with nothing but a NATS client:  node examples/call.mjs
// NATS_URL comes from `troupe env`; the token in it is handed over on its own, as the client wants it.

import { connect } from 'nats';

const { host, username: token } = new URL(process.env.NATS_URL ?? '');
const nats = await connect({ servers: host, token });
const reply = await nats.request('troupe.call.everything.echo', JSON.stringify({ message: 'hi' }), { timeout: 30_000 });
const failure = reply.headers?.get('Nats-Service-Error');
if (failure) throw new Error(failure);
console.log(reply.json().content[0].text);
await nats.close();
