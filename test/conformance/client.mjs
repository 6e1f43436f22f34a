// What the suite starts as its "client" (`--command`): hands its server to the daemon that TROUPE_STAGE names, which does
// the rest; without one, a daemon of its own is started for it.
// Usage: node client.mjs <url>, with MCP_CONFORMANCE_SCENARIO and MCP_CONFORMANCE_CONTEXT

const url = process.argv.at(-1);
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? '';
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const stage = process.env.TROUPE_STAGE ? { address: process.env.TROUPE_STAGE } : await ownStage();

const answer = await fetch(stage.address, { method: 'POST', body: JSON.stringify({ url, scenario, context }) });
if (!answer.ok) console.error(await answer.text());
await stage.close?.();
process.exit(answer.ok ? 0 : 1);

// Loaded only where it is wanted: most clients live for a moment.
async function ownStage() {
  const { startClientStage } = await import('./client-stage.mjs');
  return startClientStage();
}
