// What runs out is refused with a sentence, and only to those who take too much of it: more connections than there are
// descriptors, more callers than there are processes.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { rawHost } from '../support/host.ts';

let d: Daemon;
beforeAll(async () => {
  const servers = { echo: fixture('echo', { share: 'principal' }), late: fixture('echo', { enabled: false }) };
  d = await daemon({ servers, descriptors: 256 });
});
afterAll(() => d[Symbol.asyncDispose]());

test('four hundred idle connections at a limit of 256 descriptors take nothing from servers, hosts or the owner', async () => {
  const port = Number(new URL(await d.http()).port);
  const host = await rawHost(`${await d.http()}/mcp`);
  const idle: Socket[] = [];
  for (let count = 0; count < 400; count++) {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {}); // most are closed again
    idle.push(socket);
    await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
  }
  const { limits } = await d.status();
  expect(limits.descriptors.most).toBe(256);
  expect(limits.hosts).toEqual({ used: 96, most: 96 });
  expect(limits.descriptors.used).toBeLessThan(200);
  expect((await d.cli('start', 'late')).exitCode).toBe(0); // which takes a process
  expect((await d.request('troupe.call.late.echo', { message: 'bus' })).data.content[0].text).toBe('bus');
  const asked = await host.ask('tools/call', { name: 'echo__echo', arguments: { message: 'http' } });
  expect(asked.result.content[0].text).toBe('http');
  expect((await rawHost(`${await d.http()}/mcp`)).opened.serverInfo.name).toBe('troupe');
  expect((await d.cli('status')).stdout).toMatch(/^limits +9\d of 96 connections of hosts are open; close some/m);
  for (const socket of idle) socket.destroy();
  await eventually(async () => expect((await d.status()).limits.hosts.used).toBeLessThan(20));
  expect((await d.cli('status')).stdout).not.toMatch(/^limits.*hosts/m);
});

test('forty callers that nobody knows leave a process for the next one, which is served at once', async () => {
  const call = (caller: string) => d.request(`troupe.as.${caller}.call.echo.echo`, { message: caller });
  for (let first = 0; first < 40; first += 8)
    await Promise.all(Array.from({ length: 8 }, (_, index) => call(`made-up-${first + index}`)));
  expect((await call('honest')).data.content[0].text).toBe('honest');
  // Those that were given up say goodbye while others start.
  await eventually(async () => {
    const { limits } = await d.status();
    expect(limits.servers.used).toBeLessThanOrEqual(limits.servers.most);
  });
  expect((await call('honest')).data.content[0].text).toBe('honest');
});
