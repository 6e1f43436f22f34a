// What was found, as a table for people on a terminal, and whole as docs/FIELD.md.

import { readFileSync } from 'node:fs';
import { DECLARED } from './visit.mjs';

const NOTE_CHARACTERS = 240;

/** For a terminal: one line each, and what is wrong below it. */
export function table({ servers, clients, suites }) {
  const rows = [
    ...servers.map((each) => [
      ...[each.name, each.version, each.transport, each.era, each.counts.join('/')],
      ...[answers(each), verdict(each)],
    ]),
    ...clients.map((each) => [each.name, each.version, Object.keys(each.ways).join(', '), '', '', '', verdict(each)]),
    ...suites.map((each) => [each.name, each.version, each.transport, '', '', score(each), verdict(each)]),
  ];
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((cells) => cells[column].length)));
  const lines = rows.map((cells) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column]))
      .join('  ')
      .trimEnd(),
  );
  const troubles = [...servers, ...clients, ...suites].flatMap((each) =>
    each.troubles.map((trouble) => `${each.name}: ${trouble}`),
  );
  return ['', ...lines, '', ...troubles].join('\n');
}

export function document({ servers, clients, suites }) {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const compared = servers.reduce((sum, each) => sum + each.compared, 0);
  const refused = servers.reduce((sum, each) => sum + each.refused, 0);
  const tools = servers.reduce((sum, { counts: [count] }) => sum + (Number(count) || 0), 0);
  const open = servers.filter(({ isOpen }) => isOpen).length;
  const same = servers.filter(({ isOpen, troubles }) => isOpen && troubles.length === 0).length;
  return `# Real servers and clients

Written by \`npm run field\` on ${new Date().toISOString().slice(0, 10)}, with troupe ${version} and Node ${process.version}.
Nothing here is edited by hand; \`test/field/servers.mjs\` and \`test/field/clients.mjs\` are the lists.

Each server is a package of the npm registry in the version that stands here (with whatever that depends on, as the registry has
it on the day), started so that it needs neither a network nor an account. It is opened twice by hand-written JSON-RPC, with no SDK
between: directly, and behind one daemon that has all of them. ${open} of ${servers.length} opened, with ${tools} tools; ${compared} answers to calls, reads and
prompts were compared, ${refused} of them refusals, since a server without its service can do little more; ${same} servers are the same
through troupe as without it.

## Servers

*Compared* are the answers at \`/mcp/<server>\`, beside all lists and \`initialize\`; *refused* are those that say no in the words of
the server. *Same bytes* means that all of these are; that at \`/mcp\` each tool and prompt is there under \`server__name\`, each
resource under its URI or \`troupe+server:URI\`, and otherwise the same; and that the first call is answered with the same bytes at
\`/mcp\`, over NATS, and at \`/mcp/<server>\` again after the server's process was killed. *Lists* counts tools, resources, templates
and prompts: – is what the server does not claim to have, *error* what it claims and refuses, which a host must hear as the server
said it.

${markdown(
  ['server', 'package', 'version', 'transport', 'era', 'opened', 'lists', 'compared', 'same bytes', 'note'],
  servers.map((each) => [
    ...[each.name, `\`${each.package}\``, each.version, each.transport, each.era, each.isOpen ? 'yes' : '**no**'],
    ...[each.counts.join(' / '), answers(each), each.isOpen ? verdict(each) : '–', note(each)],
  ]),
)}

## What differs on purpose

${DECLARED.map((sentence) => `- ${sentence}`).join('\n')}

Times, ids and the like, in which two runs of one server differ anyway, are named in the list and left out on both sides.

## Clients

Each opens a session, lists the tools of \`everything\` and has it echo a message: at \`/mcp/<server>\`, over the old HTTP+SSE, or
over stdio with \`troupe connect\`.

${markdown(
  ['client', 'package', 'version', 'worked over', 'note'],
  clients.map((each) => [each.name, `\`${each.package}\``, each.version, each.worked.join(', ') || '–', note(each)]),
)}

## The official conformance suite

Its scenarios for servers, at \`/mcp/<server>\`, with the fixture of \`test/conformance/server\` behind troupe. \`npm run conformance\`
runs them too, and those for clients.

${markdown(
  ['suite', 'version', 'fixture over', 'scenarios', 'checks', 'note'],
  suites.map((each) => [each.name, each.version, each.transport, `${each.scenarios}`, score(each), note(each)]),
)}
`;
}

const verdict = ({ troubles }) => (troubles.length === 0 ? 'yes' : '**no**');
const answers = ({ compared, refused }) => (refused > 0 ? `${compared}, ${refused} refused` : `${compared}`);
const score = ({ passed, failed }) => `${passed} of ${passed + failed}`;

function note({ troubles, note: given = '' }) {
  const said = [given, ...troubles].filter(Boolean).join('; ');
  const short = said.length > NOTE_CHARACTERS ? `${said.slice(0, NOTE_CHARACTERS)} …` : said;
  return short.replaceAll('|', '\\|').replaceAll('<', '\\<').replace(/\s+/g, ' ');
}

function markdown(head, rows) {
  const lines = [head, head.map(() => '---'), ...rows];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
