// The hosts that troupe can be put into: where each keeps its servers, in which form, and whether it takes an address.
// Only texts are made here; `troupe install` shows them, asks, and writes.

import { homedir } from 'node:os';
import { join } from 'node:path';
import { TroupeError } from '../../protocol/failures.ts';
import { settingsFolder } from './foreign.ts';
import { withEntry } from './json.ts';
import { withTable } from './toml.ts';

/** How the host reaches troupe: by a command that it starts, or by an address. */
export type Access =
  | { readonly command: string; readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> }
  | { readonly url: string; readonly isGuarded: boolean };

export type HostKind = {
  readonly title: string;
  readonly path: string;
  /** The text of its file with troupe in it; the same text if it is there already. */
  readonly install: (text: string, name: string, access: Access) => string;
};

/** Where a host that reads it finds the bearer token: the token itself is written nowhere. */
const TOKEN_VARIABLE = 'TROUPE_TOKEN';

export function hostKind(name: string, env: NodeJS.ProcessEnv, platform: NodeJS.Platform): HostKind {
  const home = env.HOME || homedir();
  const settings = settingsFolder(home, platform, env);
  const json = (title: string, path: string, shape: Shape): HostKind => ({
    title,
    path,
    install: (text, name, access) => withEntry({ path, text, key: shape.key, name, value: shape.entryOf(access) }),
  });
  switch (name) {
    case 'claude-code':
      return json('Claude Code', join(home, '.claude.json'), {
        key: 'mcpServers',
        entryOf: (access) => typed(access, `\${${TOKEN_VARIABLE}}`),
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
        entryOf: (access) => typed(access, `\${env:${TOKEN_VARIABLE}}`),
      });
    case 'codex':
      return codex(join(env.CODEX_HOME || join(home, '.codex'), 'config.toml'));
    default:
      throw new TroupeError('invalid', `troupe does not know the host ${name}; it knows ${HOST_NAMES.join(', ')}`);
  }
}

export const HOST_NAMES = ['claude-code', 'claude-desktop', 'cursor', 'vscode', 'codex'] as const;

type Shape = { readonly key: string; readonly entryOf: (access: Access) => Record<string, unknown> };

function typed(access: Access, token: string): Record<string, unknown> {
  return 'url' in access ? { type: 'http', ...addressed(access, token) } : { type: 'stdio', ...started(access) };
}

function untyped(access: Access): Record<string, unknown> {
  return 'url' in access ? addressed(access, `\${env:${TOKEN_VARIABLE}}`) : started(access);
}

function commandOnly(access: Access): Record<string, unknown> {
  if (!('url' in access)) return started(access);
  throw new TroupeError('invalid', 'Claude Desktop starts commands only; leave out --url');
}

const started = ({ command, args, env }: Extract<Access, { command: string }>): Record<string, unknown> => ({
  command,
  args,
  ...(Object.keys(env).length > 0 && { env }),
});

const addressed = ({ url, isGuarded }: Extract<Access, { url: string }>, token: string): Record<string, unknown> => ({
  url,
  ...(isGuarded && { headers: { Authorization: `Bearer ${token}` } }),
});

function codex(path: string): HostKind {
  const entryOf = (access: Access): Record<string, unknown> =>
    'url' in access
      ? { url: access.url, ...(access.isGuarded && { bearer_token_env_var: TOKEN_VARIABLE }) }
      : started(access);
  return {
    title: 'Codex',
    path,
    install: (text, name, access) => withTable({ path, text, table: ['mcp_servers', name], values: entryOf(access) }),
  };
}
