#!/usr/bin/env node
// The command line: argv to one verb. `connect` is started by every host that only spawns commands, so it must start
// fast, and loads nothing of what the other verbs need.

const [verb, ...words] = process.argv.slice(2);

if (verb === 'connect') {
  const { connect } = await import('./cli/connect/connect.ts');
  connect(words, process.env);
} else {
  const { runVerb } = await import('./cli/run.ts');
  await runVerb(process.argv.slice(2));
}

export {}; // `await` at the top belongs to modules
