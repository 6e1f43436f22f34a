// The hosts that troupe can be put into: where each keeps its servers, in which form, and which ways in it knows.
// Only texts are made here: what is asked, shown and written is the business of `troupe install`.

import { homedir } from 'node:os';
import { join } from 'node:path';
import { TroupeError } from '../protocol/failures.ts';
import { settingsFolder } from './foreign.ts';
import { withEntry } from './hosts-json.ts';
import { withTable } from './hosts-toml.ts';

/** How the host comes to us: by a command that it starts, or by an address. */
export type WayIn =
  | { readonly command: string; readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> }
  | { readonly url: string; readonly isGuarded: boolean };

export type HostKind = {
  readonly title: string;
  readonly path: string;
  /** The text of its file with troupe in it; the same text if it is there already. */
  readonly install: (text: string, name: string, way: WayIn) => string;
};

/** Where a host that reads it finds the bearer token: the token itself is written nowhere. */
const TOKEN_VARIABLE = 'TROUPE_TOKEN';

export function hostKind(name: string, env: NodeJS.ProcessEnv, platform: NodeJS.Platform): HostKind {
  const home = env.HOME || homedir();
  const settings = settingsFolder(home, platform, env);
  const json = (title: string, path: string, shape: Shape): HostKind => ({
    ...{ title, path },
    install: (text, entry, way) => withEntry({ path, text, key: shape.key, name: entry, value: shape.entryOf(way) }),
  });
  switch (name) {
    case 'claude-code':
      return json('Claude Code', join(home, '.claude.json'), {
        key: 'mcpServers',
        entryOf: (way) => typed(way, `\${${TOKEN_VARIABLE}}`),
      });
    case 'claude-desktop':
      return json('Claude Desktop', join(settings, 'Claude', 'claude_desktop_config.json'), {
        key: 'mcpServers',
        entryOf: commandOnly,
      });
    case 'cursor':
      return json('Cursor', join(home, '.cursor', 'mcp.json'), { key: 'mcpServers', entryOf: untyped });
    case 'vscode':
      return json('VS Code', join(settings, 'Code', 'User', 'mcp.json'), {
        key: 'servers',
        entryOf: (way) => typed(way, `\${env:${TOKEN_VARIABLE}}`),
      });
    case 'codex':
      return codex(join(env.CODEX_HOME || join(home, '.codex'), 'config.toml'));
    default:
      throw new TroupeError('invalid', `troupe does not know the host ${name}; it knows ${HOST_NAMES.join(', ')}`);
  }
}

export const HOST_NAMES = ['claude-code', 'claude-desktop', 'cursor', 'vscode', 'codex'] as const;

type Shape = { readonly key: string; readonly entryOf: (way: WayIn) => Record<string, unknown> };

function typed(way: WayIn, token: string): Record<string, unknown> {
  return 'url' in way ? { type: 'http', ...addressed(way, token) } : { type: 'stdio', ...started(way) };
}

function untyped(way: WayIn): Record<string, unknown> {
  return 'url' in way ? addressed(way, `\${env:${TOKEN_VARIABLE}}`) : started(way);
}

function commandOnly(way: WayIn): Record<string, unknown> {
  if (!('url' in way)) return started(way);
  throw new TroupeError('invalid', 'Claude Desktop starts commands only; leave out --url');
}

const started = ({ command, args, env }: Extract<WayIn, { command: string }>): Record<string, unknown> => ({
  ...{ command, args },
  ...(Object.keys(env).length > 0 && { env }),
});

const addressed = ({ url, isGuarded }: Extract<WayIn, { url: string }>, token: string): Record<string, unknown> => ({
  url,
  ...(isGuarded && { headers: { Authorization: `Bearer ${token}` } }),
});

function codex(path: string): HostKind {
  const entryOf = (way: WayIn): Record<string, unknown> =>
    'url' in way ? { url: way.url, ...(way.isGuarded && { bearer_token_env_var: TOKEN_VARIABLE }) } : started(way);
  return {
    ...{ title: 'Codex', path },
    install: (text, name, way) => withTable({ path, text, table: ['mcp_servers', name], values: entryOf(way) }),
  };
}
