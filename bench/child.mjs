// The cheap MCP server behind every measurement: a line splitter, JSON.parse and one write per chunk read.
// `echo` gives its arguments' message back, `big {bytes}` a long text, `sleep {ms}` answers later, `mark {key, ms}` writes
// the key to the file MARKS before it answers, so that runs can be counted. TOOLS pads the list.

import { openSync, writeSync } from 'node:fs';

const text = (value) => ({ content: [{ type: 'text', text: value }] });
const names = ['echo', 'big', 'sleep', 'mark'];
const marks = process.env.MARKS ? openSync(process.env.MARKS, 'a') : undefined;
for (let number = names.length; number < Number(process.env.TOOLS ?? 1); number += 1) names.push(`tool-${number}`);

const methods = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'bench', version: '1.0.0' },
  }),
  ping: () => ({}),
  'tools/list': () => ({
    tools: names.map((name) => ({ name, description: `The tool ${name}.`, inputSchema: { type: 'object' } })),
  }),
  'tools/call': ({ name, arguments: args }, id) => {
    if (name === 'big') process.stdout.write(bigAnswer(id, args.bytes));
    else if (name === 'sleep') setTimeout(() => process.stdout.write(answerTo(id, text('slept'))), args.ms);
    else if (name === 'mark') mark(id, args);
    else return text(args.message ?? '');
  },
};

/** On the disk before anything else: a run counts also when the process is killed before its answer. */
function mark(id, { key, ms = 5 }) {
  writeSync(marks, `${key}\n`);
  setTimeout(() => process.stdout.write(answerTo(id, text(key))), ms);
}

const answerTo = (id, result) => `${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`;

/** Made once: else the child's own work on a megabyte would hide what is measured. */
const made = new Map();
function bigAnswer(id, bytes) {
  if (!made.has(bytes)) made.set(bytes, Buffer.from(`,"result":${JSON.stringify(text('x'.repeat(bytes)))}}\n`));
  return Buffer.concat([Buffer.from(`{"jsonrpc":"2.0","id":${JSON.stringify(id)}`), made.get(bytes)]);
}

let rest = '';
process.stdin.setEncoding('utf8').on('data', (chunk) => {
  const lines = (rest + chunk).split('\n');
  rest = lines.pop();
  let answers = '';
  for (const line of lines) answers += handle(JSON.parse(line));
  if (answers) process.stdout.write(answers);
});
process.stdin.on('end', () => process.exit(0));

function handle({ id, method, params = {} }) {
  if (id === undefined) return '';
  const result = methods[method]?.(params, id);
  if (result) return answerTo(id, result);
  if (methods[method]) return ''; // answered later
  return `${JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: `no method ${method}` } })}\n`;
}
