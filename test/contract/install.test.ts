// What `troupe install` makes of each host's file: the one entry, in that host's own form, and every other byte as it was.

import { describe, expect, it } from 'vitest';
import { unified } from '../../src/cli/setup/install.ts';
import { type Access, HOST_NAMES, hostKind } from '../../src/config/hosts/hosts.ts';

const env = { HOME: '/home/ada' };
const host = (name: string, platform: NodeJS.Platform = 'linux') => hostKind(name, env, platform);
const shim: Access = { command: '/usr/bin/node', args: ['/opt/troupe/main.js', 'connect'], env: {} };
const address: Access = { url: 'http://127.0.0.1:7411/mcp', isGuarded: false };
const SHIM = { command: '/usr/bin/node', args: ['/opt/troupe/main.js', 'connect'] };
const jsonHosts = HOST_NAMES.filter((name) => name !== 'codex');

describe('where and how', () => {
  it.each([
    ['claude-code', '/home/ada/.claude.json', '/home/ada/.claude.json'],
    [
      'claude-desktop',
      '/home/ada/.config/Claude/claude_desktop_config.json',
      '/home/ada/Library/Application Support/Claude/claude_desktop_config.json',
    ],
    ['cursor', '/home/ada/.cursor/mcp.json', '/home/ada/.cursor/mcp.json'],
    ['vscode', '/home/ada/.config/Code/User/mcp.json', '/home/ada/Library/Application Support/Code/User/mcp.json'],
    ['codex', '/home/ada/.codex/config.toml', '/home/ada/.codex/config.toml'],
  ])('%s keeps its servers in its own place', (name, linux, mac) => {
    expect([host(name).path, host(name, 'darwin').path]).toEqual([linux, mac]);
  });

  it.each([
    ['claude-code', 'mcpServers', { type: 'stdio', ...SHIM }],
    ['claude-desktop', 'mcpServers', SHIM],
    ['cursor', 'mcpServers', SHIM],
    ['vscode', 'servers', { type: 'stdio', ...SHIM }],
  ])('%s is given the shim in its form, also when it has no file yet', (name, key, entry) => {
    expect(JSON.parse(host(name).install('', 'troupe', shim))).toEqual({ [key]: { troupe: entry } });
  });

  it.each([
    ['claude-code', { type: 'http', url: address.url, headers: { Authorization: `Bearer \${TROUPE_TOKEN}` } }],
    ['cursor', { url: address.url, headers: { Authorization: `Bearer \${env:TROUPE_TOKEN}` } }],
    ['vscode', { type: 'http', url: address.url, headers: { Authorization: `Bearer \${env:TROUPE_TOKEN}` } }],
  ])('%s is given the address, and never the token itself', (name, guarded) => {
    const read = (way: Access) => Object.values<any>(JSON.parse(host(name).install('', 'troupe', way)))[0].troupe;
    expect(read({ ...address, isGuarded: true })).toEqual(guarded);
    expect(read(address)).not.toHaveProperty('headers');
  });

  it('Claude Desktop is not given an address, which it would not read', () => {
    expect(() => host('claude-desktop').install('', 'troupe', address)).toThrow(/leave out --url/);
  });

  it('a host nobody knows is answered with those that are known', () => {
    expect(() => host('emacs')).toThrow(/claude-code, claude-desktop, cursor, vscode, codex/);
  });
});

describe('a JSON file', () => {
  const KEPT =
    '{\n\t// mine\n\t"theme": "dark",\n\t"mcpServers": {\n\t\t"files": { "command": "x" }, // keep\n\t},\n}\n';

  it('keeps every byte that is not ours, comments and tabs too', () => {
    const after = host('cursor').install(KEPT, 'troupe', shim);
    const lines = after.split('\n');
    const ours = lines.filter((line) => !KEPT.split('\n').includes(line));
    expect(lines.filter((line) => !ours.includes(line)).join('\n')).toBe(KEPT);
    expect(ours.join('\n')).toMatch(/^\t\t"troupe": \{[\s\S]*\},$/);
  });

  it.each(jsonHosts)('of %s is the same after a second time', (name) => {
    const once = host(name).install('{"other": 1}', 'troupe', shim);
    expect(host(name).install(once, 'troupe', shim)).toBe(once);
  });

  it('has its entry brought up to date in place, and what its owner added stays', () => {
    const before = `{
  "mcpServers": {
    "troupe": {
      "url": "http://127.0.0.1:1/mcp",
      "timeout": 5,
      "env": { "TROUPE_STATE": "/old", "LANG": "de" }
    },
    "files": { "command": "x" }
  }
}
`;
    const after = host('claude-desktop').install(before, 'troupe', shim);
    expect(JSON.parse(after).mcpServers).toEqual({
      troupe: { ...SHIM, timeout: 5, env: { LANG: 'de' } },
      files: { command: 'x' },
    });
    expect(after.endsWith('    },\n    "files": { "command": "x" }\n  }\n}\n')).toBe(true);
  });

  it.each([
    ['{"mcpServers": {', /closing brace/],
    ['[]', /not a JSON object/],
    ['{"mcpServers": []}', /"mcpServers" in .* is not an object/],
    ['{"mcpServers": {}, "mcpServers": {}}', /twice/],
  ])('like %s is refused with a sentence', (text, why) => {
    expect(() => host('cursor').install(text, 'troupe', shim)).toThrow(why);
  });

  it('keeps the mark at its beginning', () => {
    expect(host('cursor').install('\uFEFF{}', 'troupe', shim).startsWith('\uFEFF{')).toBe(true);
  });
});

describe('a TOML file', () => {
  const codex = host('codex');
  const TABLE = '[mcp_servers.troupe]\ncommand = "/usr/bin/node"\nargs = ["/opt/troupe/main.js", "connect"]\n';
  const OTHER = `# mine
model = "o3" # here
notes = """
[mcp_servers.troupe]
"""
list = [ # a list
  "]", 'b',
]

[mcp_servers.files]
command = "x"
`;

  it('gets a table of its own at the end', () => {
    expect(codex.install('', 'troupe', shim)).toBe(TABLE);
    expect(codex.install(OTHER, 'troupe', shim)).toBe(`${OTHER}\n${TABLE}`);
    expect(codex.install('a = 1', 'troupe', shim)).toBe(`a = 1\n\n${TABLE}`);
    expect(codex.install('', 'troupe', { ...address, isGuarded: true })).toBe(
      '[mcp_servers.troupe]\nurl = "http://127.0.0.1:7411/mcp"\nbearer_token_env_var = "TROUPE_TOKEN"\n',
    );
    expect(codex.install('', 'my', { ...shim, env: { TROUPE_STATE: '/a "b"' } })).toContain(
      'env = { TROUPE_STATE = "/a \\"b\\"" }\n',
    );
  });

  it('is the same after a second time', () => {
    const once = codex.install(OTHER, 'troupe', shim);
    expect(codex.install(once, 'troupe', shim)).toBe(once);
  });

  it('has its table brought up to date, and nothing else of it or around it', () => {
    const before = `${OTHER}
[ mcp_servers . "troupe" ] # ours
startup_timeout_sec = 20
url = "http://127.0.0.1:1/mcp"

# the next
[mcp_servers.troupe.tools.echo]
approval = "always"
`;
    expect(codex.install(before, 'troupe', shim)).toBe(`${OTHER}
[ mcp_servers . "troupe" ] # ours
command = "/usr/bin/node"
args = ["/opt/troupe/main.js", "connect"]
startup_timeout_sec = 20

# the next
[mcp_servers.troupe.tools.echo]
approval = "always"
`);
  });

  it.each([
    ['mcp_servers = { troupe = {} }', /line 1 .* another form/],
    ['[mcp_servers]\ntroupe = { command = "x" }', /line 2 .* another form/],
    ['mcp_servers.troupe.command = "x"', /line 1 .* another form/],
    ['[mcp_servers.troupe]\n[mcp_servers.troupe.env]\nA = "b"', /line 2 .* another form/],
    ['[mcp_servers.troupe]\n[a]\n[mcp_servers.troupe]', /twice/],
    ['a = "open', /:1: the value is not complete/],
    ['a = 1\nb = [1,\n2', /:2: the value is not complete/],
    ['a =', /:1: the value is not complete/],
    ['\n[broken', /:2: a \] is missing/],
    ['what is this', /:1: a = is missing/],
    ['[a] b', /:1: something follows/],
  ])('like %j is refused with a sentence', (text, why) => {
    expect(() => codex.install(text, 'troupe', shim)).toThrow(why);
  });
});

describe('the difference that is shown', () => {
  it('is one hunk with three lines around it', () => {
    const before = 'a\nb\nc\nd\ne\nf\n';
    expect(unified('/f', before, before.replace('e', 'E\nE2'))).toBe(
      '--- /f\n+++ /f\n@@ -2,5 +2,6 @@\n b\n c\n d\n-e\n+E\n+E2\n f',
    );
    expect(unified('/f', '', 'x\n')).toBe('--- /dev/null\n+++ /f\n@@ -0,0 +1,1 @@\n+x');
  });

  it('shows of a very long line what is near the change', () => {
    const before = `{"big":"${'x'.repeat(5_000)}","end":1}`;
    const shown = unified('/f', before, before.replace('"end":1', '"end":2'));
    expect(shown.length).toBeLessThan(1_000);
    expect(shown).toContain('"end":2');
  });
});
