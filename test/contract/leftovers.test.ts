// What may be ended at a start: what the dead have left, also of a state directory that was moved; never a process of a
// daemon that lives, by whatever name it knows the directory.

import { execa } from 'execa';
import { expect, test } from 'vitest';
import { realPathsOf } from '../../src/config/paths.ts';
import { markerOf, sweepLeftovers } from '../../src/daemon/leftovers.ts';
import { acquireLock } from '../../src/store/lock.ts';
import { processIdentity } from '../../src/store/process-identity.ts';
import { openStore } from '../../src/store/store.ts';
import { scratch } from '../support/scratch.ts';

test('ends what a moved directory brought along only when its daemon is gone', async () => {
  await using dir = await scratch();
  const paths = realPathsOf({ TROUPE_STATE: dir.path });
  const store = await openStore(paths.database);
  await using _ = { [Symbol.asyncDispose]: store.close };
  await using server = detached();
  const { startTime, bootId } = (await processIdentity(server.pid))!;
  const elsewhere = markerOf({ state: '/where/it/was', lock: 'daemon-b' });
  await store.commit('putProcess', ['server', 'echo', server.pid, startTime, bootId, elsewhere, Date.now()]);

  const living = acquireLock(paths.state, 'daemon-b')!;
  expect(await sweepLeftovers(store, paths)).toEqual([]);
  expect(server.child.exitCode).toBeNull();
  living.release();
  expect(await sweepLeftovers(store, paths)).toEqual(['echo']);
  expect(await server.child).toMatchObject({ signal: 'SIGKILL' });
});

/** A process in a group of its own, as a server is. */
function detached() {
  const child = execa(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { detached: true, reject: false });
  return {
    child,
    pid: child.pid as number,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await child;
    },
  };
}
