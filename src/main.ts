// The command line: argv to one verb. `connect` is started by every host that only spawns commands, so it must start
// fast, and loads nothing of what the other verbs need.

const [verb, ...words] = process.argv.slice(2);

if (verb === 'connect') void import('./cli/connect/connect.ts').then(({ connect }) => connect(words, process.env));
else void import('./cli/run.ts').then(({ runVerb }) => runVerb(process.argv.slice(2)));

export {}; // a module, though it exports nothing
