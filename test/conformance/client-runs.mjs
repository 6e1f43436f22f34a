// The suite's client scenarios, each a run of the suite of its own, with troupe as the client.

import { fileURLToPath } from 'node:url';
import { expectedFailures } from './expected-failures.mjs';
import { runSuite } from './suite.mjs';

const auth = (...names) => names.map((name) => `auth/${name}`);
const SCENARIOS = {
  conformance: [
    ...['initialize', 'tools_call', 'sse-retry', 'elicitation-sep1034-client-defaults'],
    ...auth('metadata-default', 'metadata-var1', 'metadata-var2', 'metadata-var3', 'basic-cimd'),
    ...auth('scope-from-www-authenticate', 'scope-from-scopes-supported', 'scope-omitted-when-undefined'),
    ...auth('scope-step-up', 'scope-retry-limit', 'pre-registration'),
    ...auth('token-endpoint-auth-basic', 'token-endpoint-auth-post', 'token-endpoint-auth-none'),
    ...auth('2025-03-26-oauth-metadata-backcompat', '2025-03-26-oauth-endpoint-fallback'),
    ...auth('resource-mismatch', 'offline-access-scope', 'offline-access-not-supported'),
    ...auth('client-credentials-jwt', 'client-credentials-basic', 'cross-app-access-complete-flow'),
  ],
  // What the newer suite has besides, and what it now judges otherwise.
  'conformance-next': [
    ...['json-schema-2020-12-preservation', 'auth/2025-03-26-oauth-metadata-backcompat'],
    ...auth('iss-supported', 'iss-not-advertised', 'iss-supported-missing', 'iss-wrong-issuer', 'iss-unexpected'),
    ...auth('iss-normalized', 'metadata-issuer-mismatch', 'authorization-server-migration'),
  ],
};

export const clientRuns = Object.entries(SCENARIOS).flatMap(([tool, scenarios]) =>
  scenarios.map((scenario) => ({
    ...{ tool, scenario, title: `${tool} client ${scenario}` },
    expected: expectedFailures[`${tool} ${scenario}`],
  })),
);

const COMMAND = `${process.execPath} ${fileURLToPath(new URL('client.mjs', import.meta.url))}`;

/** The newer suite would speak 2026-07-28 in what it has added since. */
const ERA = { conformance: [], 'conformance-next': ['--spec-version', '2025-11-25', '--force'] };

/** `stage` is one of startClientStage. */
export async function runClient(stage, { tool, scenario }) {
  const words = ['client', '--command', COMMAND, '--scenario', scenario, '--timeout', '60000', ...ERA[tool]];
  const result = await runSuite(tool, words, { TROUPE_STAGE: stage.address });
  return { ...result, isGood: result.exitCode === 0 && result.passed > 0 };
}
