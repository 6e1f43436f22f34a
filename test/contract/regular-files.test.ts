// Whatever file somebody names: a pipe that nobody writes to, a device without an end and a file without measure are each one
// sentence, at once.

import { rename, symlink, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, it } from 'vitest';
import { natsFromEnvironment } from '../../src/bus/environment.ts';
import { argumentsJson } from '../../src/cli/calls/arguments.ts';
import { watchConfig } from '../../src/config/file/watch.ts';
import { readHostFile } from '../../src/config/hosts/file.ts';
import { loadConfig } from '../../src/config/load.ts';
import { eventually } from '../support/eventually.ts';
import { scratch } from '../support/scratch.ts';

const complaintOf = (path: string): string => {
  const loaded = loadConfig(path, {});
  return loaded.ok ? 'ok' : loaded.complaints.map(({ message }) => message).join();
};

it('takes a regular file as the configuration, or a link to one, and nothing else', async () => {
  await using dir = await scratch();
  const at = (name: string) => join(dir.path, name);
  await execa('mkfifo', [at('pipe')]);
  await writeFile(at('large'), '{}');
  await truncate(at('large'), 4 * 2 ** 20 + 1);
  await writeFile(at('good'), '{ "mcpServers": {} }');
  await symlink('good', at('link'));
  await symlink('pipe', at('linked-pipe'));
  const server = createServer().listen(at('socket'));
  expect(
    Object.fromEntries(
      ['pipe', 'linked-pipe', 'large', 'socket', 'good', 'link', ''].map((name) => [name, complaintOf(at(name))]),
    ),
  ).toEqual({
    pipe: 'this is a named pipe; name a file',
    'linked-pipe': 'this is a named pipe; name a file',
    large: 'the file has more than 4 MB; name a smaller one',
    socket: 'this is a socket; name a file',
    good: 'ok',
    link: 'ok',
    '': 'this is a directory; name a file',
  });
  server.close();
});

it('reads no device', () => {
  expect(complaintOf('/dev/zero')).toBe('this is a device; name a file');
});

it('notices that a configuration became a pipe, and that it is a file again', async () => {
  await using dir = await scratch();
  const config = join(dir.path, 'troupe.json');
  const swap = async (make: (path: string) => Promise<unknown>) => {
    await make(`${config}.new`);
    await rename(`${config}.new`, config);
  };
  await writeFile(config, '{}');
  let changes = 0;
  const watcher = watchConfig(config, () => changes++);
  await swap((path) => execa('mkfifo', [path]));
  await eventually(() => expect(changes).toBe(1));
  await swap((path) => writeFile(path, '{ "mcpServers": {} }'));
  await eventually(() => expect(changes).toBe(2));
  await watcher.close();
});

it('reads nothing else either: hosts, credentials, keys, arguments', async () => {
  await using dir = await scratch();
  const pipe = join(dir.path, 'pipe');
  await execa('mkfifo', [pipe]);
  expect(() => readHostFile(pipe)).toThrow(
    `${pipe} cannot be read: this is a named pipe; name a file; nothing was changed`,
  );
  expect(() => natsFromEnvironment({ NATS_URL: 'localhost', NATS_CREDS: pipe })).toThrow(`file ${pipe} cannot be read`);
  expect(() => argumentsJson([], `@${pipe}`, undefined)).toThrow(
    `--args @${pipe} cannot be read: this is a named pipe`,
  );
  const oauth = { privateKeyFile: 'pipe', clientId: 'me' };
  const definition = { url: 'https://example.org/mcp', 'x-troupe': { oauth } };
  await writeFile(join(dir.path, 'troupe.json'), JSON.stringify({ mcpServers: { far: definition } }));
  expect(complaintOf(join(dir.path, 'troupe.json'))).toContain('x-troupe.oauth.privateKeyFile cannot be read');
});
