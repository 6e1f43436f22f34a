// The servers of a file: the variables of each definition are expanded, its settings layered, the whole checked.
// Every problem of every server is reported.

import { statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { check } from './complaints.ts';
import { complete, isObject, isRemote, type Surroundings } from './definition.ts';
import { expand } from './expand.ts';
import { isServerName, mendName, NAME_RULE } from './names.ts';
import { readRemote } from './remote.ts';
import type { Report } from './report.ts';
import { definitionSchema, type ServerConfig, type StdioServer } from './schema.ts';

const FORM = { known: Object.keys(definitionSchema.shape), expanded: ['command', 'args', 'env', 'cwd'] };

export function readServer(
  name: string,
  raw: unknown,
  surroundings: Surroundings,
  report: Report,
): ServerConfig | undefined {
  if (!isServerName(name)) {
    report.complain({ keys: [], at: 'key', message: `its name must match ${NAME_RULE}; call it "${mendName(name)}"` });
  }
  return isObject(raw) && isRemote(raw)
    ? readRemote(name, raw, surroundings, report)
    : readStdio(name, raw, surroundings, report);
}

function readStdio(name: string, raw: unknown, surroundings: Surroundings, report: Report): StdioServer | undefined {
  const candidate = isObject(raw) ? complete(raw, FORM, surroundings, report) : raw;
  const { data, findings } = check(definitionSchema, candidate);
  for (const finding of findings) report.complain(finding);
  const cwd = isObject(candidate) ? directoryOf(candidate.cwd, surroundings.path) : undefined;
  if (cwd !== undefined && isObject(raw) && !isDirectory(cwd)) complainOfDirectory(raw.cwd, surroundings, report);
  if (!data) return undefined;
  const { command, args = [], env = {}, 'x-troupe': settings } = data;
  return { transport: 'stdio', name, command, args, env, ...(cwd !== undefined && { cwd }), settings };
}

/** Relative to the file, because the daemon may run anywhere. */
function directoryOf(cwd: unknown, path: string): string | undefined {
  return typeof cwd === 'string' ? resolve(dirname(path), cwd) : undefined;
}

/** Shows the text as written, so that no variable's value appears. */
function complainOfDirectory(cwd: unknown, { env }: Surroundings, report: Report): void {
  const written = String(cwd);
  if (expand(written, env).problems.length > 0) return; // said already
  const hint = written.startsWith('~') ? `write \${HOME} instead of ~` : 'create it or correct the path';
  report.complain({ keys: ['cwd'], at: 'value', message: `cwd ${JSON.stringify(cwd)} is not a directory; ${hint}` });
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // whatever the reason, no process could be launched there
  }
}
