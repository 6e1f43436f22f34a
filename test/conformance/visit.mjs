// What a person and a host do with one server behind troupe: log in where it wants that, list, and call what the scenario
// waits for.

import { createInterface } from 'node:readline';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

/** Where a person would give up. */
const MOST_LOGINS = 2;

/** How troupe is told of the suite's server: `context` is what the suite says of the client, in its own words. */
export function definitionOf(url, scenario, { client_id, client_secret, private_key_pem, signing_algorithm } = {}) {
  const oauth = {
    // The suite looks for this very address where it wants a client-id metadata document.
    clientMetadataUrl: 'https://conformance-test.local/client-metadata.json',
    ...(scenario.startsWith('auth/client-credentials') && { grant: 'client_credentials' }),
    ...(client_id && { clientId: client_id }),
    ...(client_secret && { clientSecret: client_secret }),
    ...(private_key_pem && { privateKey: private_key_pem, algorithm: signing_algorithm ?? 'ES256' }),
  };
  return { type: 'http', url, 'x-troupe': { oauth } };
}

/** A server may ask for a login when it is opened, or only when one of its tools is called. */
export async function visit(troupe, name, scenario) {
  for (let logins = 0; ; logins += 1) {
    const { state, lastError } = await troupe.until(name, ['ready', 'needs login', 'failed', 'waiting']);
    if (state === 'ready') {
      const refusal = await use(`${troupe.http}/mcp/${name}`, scenario);
      if (refusal === undefined) return;
      await troupe.until(name, ['needs login'], 5_000).catch(() => {
        throw new Error(refusal);
      });
    } else if (state !== 'needs login') throw new Error(`the server is ${state}: ${lastError}`);
    if (logins === MOST_LOGINS) throw new Error('the server wants yet another login');
    await login(troupe, name);
  }
}

/** A host that cannot be asked anything: troupe answers by rule. Returns why a call was refused, if one was. */
async function use(endpoint, scenario) {
  const client = new Client({ name: 'conformance-host', version: '1.0.0' });
  await client.connect(new StreamableHTTPClientTransport(new URL(endpoint)));
  try {
    const { tools } = await client.listTools();
    for (const call of callsOf(scenario, tools)) await client.callTool(call);
    return undefined;
  } catch (error) {
    return error.message;
  } finally {
    await client.close();
  }
}

function callsOf(scenario, tools) {
  if (scenario === 'initialize') return [];
  if (scenario === 'tools_call') return [{ name: 'add_numbers', arguments: { a: 5, b: 3 } }];
  if (scenario === 'json-schema-2020-12-preservation') {
    const schema = tools.find(({ name }) => name === 'json_schema_2020_12_tool').inputSchema;
    return [{ name: 'json_schema_echo', arguments: { schema } }];
  }
  const [first] = tools;
  if (!first) throw new Error('the server lists no tools');
  return [{ name: first.name, arguments: {} }];
}

/** A person whose browser is logged in already: the URL is opened, and redirects lead back to the callback. */
async function login(troupe, name) {
  const child = troupe.cli('login', name, '--json', '--no-browser');
  for await (const line of createInterface({ input: child.stdout })) {
    const { url } = JSON.parse(line);
    if (url) await fetch(url).then((answer) => answer.text());
  }
  const { exitCode, stderr } = await child;
  if (exitCode !== 0) throw new Error(`troupe login failed: ${stderr}`);
}
