// `npm run field`: real servers and clients from npm, opened, listed and called through troupe and beside it, compared byte for
// byte; writes docs/FIELD.md and fails if anything differs that is not declared. `npm run field -- memory git` shows only those.

import { writeFile } from 'node:fs/promises';
import { clients } from './clients.mjs';
import { playClients } from './hosts.mjs';
import { document, table } from './report.mjs';
import { scoreSuite } from './score.mjs';
import { servers } from './servers.mjs';
import { playServers } from './theatre.mjs';

const wanted = process.argv.slice(2);
const known = [...servers, ...clients].map(({ name }) => name).concat('conformance');
const unknown = wanted.filter((name) => !known.includes(name));
if (unknown.length > 0) {
  console.error(`there is no ${unknown.join(', ')}; there are ${known.join(', ')}`);
  process.exit(2);
}
const isWanted = ({ name }) => wanted.length === 0 || wanted.includes(name);

const tell = (text) => process.stderr.write(`${text}\n`);
const results = {
  servers: await playServers(servers.filter(isWanted), tell),
  clients: await playClients(clients.filter(isWanted), tell),
  suites: isWanted({ name: 'conformance' }) ? await scoreSuite(tell) : [],
};
console.log(table(results));
if (wanted.length === 0) await writeFile(new URL('../../docs/FIELD.md', import.meta.url), await document(results));
const rows = [...results.servers, ...results.clients, ...results.suites];
process.exit(rows.every(({ troubles }) => troubles.length === 0) ? 0 : 1);
