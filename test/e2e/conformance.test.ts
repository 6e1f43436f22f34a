// The official conformance suite, server and client scenarios, through troupe; `npm run conformance` shows the same as a
// table. What is known not to pass stands in test/conformance/expected-failures.mjs, with the reason.

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type ClientRun, clientRuns, runClient } from '../conformance/client-runs.mjs';
import { type ClientStage, startClientStage } from '../conformance/client-stage.mjs';
import { runServer, type Stage, serverRuns, startStage } from '../conformance/server-runs.mjs';

const TIMEOUT_MS = 240_000;

describe('as a server', () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await startStage();
  }, TIMEOUT_MS);
  afterAll(() => stage?.close());

  for (const run of serverRuns)
    test(run.title, { timeout: TIMEOUT_MS }, async () => {
      const { isGood, complaints, passed, failed, output } = await runServer(stage, run);
      const told = complaints.length > 0 ? complaints.join('\n') : output.slice(-2_000);
      expect(isGood, `${passed} of ${passed + failed} checks passed\n${told}`).toBe(true);
    });
});

const isTimed = ({ scenario }: ClientRun) => scenario === 'sse-retry';

describe('as a client', () => {
  let stage: ClientStage;
  beforeAll(async () => {
    stage = await startClientStage();
  }, TIMEOUT_MS);
  afterAll(() => stage?.close());

  const play = (run: ClientRun) => async () => {
    const { isGood, complaints, output } = await runClient(stage, run);
    if (run.expected) expect(isGood, 'it passes now: take it off the expected failures').toBe(false);
    else expect(isGood, [...complaints, output.slice(-3_000)].join('\n')).toBe(true);
  };

  // The suite looks at milliseconds here, and others work on this machine too.
  for (const run of clientRuns.filter(isTimed)) test(run.title, { timeout: TIMEOUT_MS, retry: 2 }, play(run));

  describe.concurrent('several at a time', () => {
    vi.setConfig({ maxConcurrency: 3 });
    for (const run of clientRuns) if (!isTimed(run)) test(run.title, { timeout: TIMEOUT_MS }, play(run));
  });
});
