// Another process on the same state directory: so many requests at once, each answering one challenge, as a daemon does.
// Says `ready`, waits for a line on stdin, then prints the statuses as JSON.

import { once } from 'node:events';
import { join } from 'node:path';
import { createOAuth } from '../../dist/src/servers/oauth/oauth.js';
import { openStore } from '../../dist/src/store/store.js';

const [path, server, count] = process.argv.slice(2);
const store = await openStore(join(path, 'database'));
const oauth = createOAuth({ store, directory: path, members: () => [], onLogin: () => {} });
const config = JSON.parse(server);
const authorizer = oauth.authorizerOf({ config, onBehalfOf: '_' });
console.log('ready');
await once(process.stdin, 'data');

async function request() {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const send = async () =>
    fetch(config.url, { method: 'POST', headers: { ...headers, ...(await authorizer.headers()) }, body: '{}' });
  const first = await send();
  if (first.status !== 401) return first.status;
  const again = await authorizer.challenged({ status: 401, headers: Object.fromEntries(first.headers) });
  return again ? (await send()).status : 'login';
}
console.log(JSON.stringify(await Promise.all(Array.from({ length: Number(count) }, request))));
oauth.close();
await store.close();
process.exit(0);
