// Every way in which a file changes under a daemon, with a real watcher on a real file system.

import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { watchConfig } from '../../src/config/file/watch.ts';
import { eventually } from '../support/eventually.ts';
import { type Scratch, scratch } from '../support/scratch.ts';

let dir: Scratch;
let changes = 0;
let watcher: ReturnType<typeof watchConfig> | undefined;
const at = (...names: string[]) => join(dir.path, ...names);

beforeEach(async () => {
  dir = await scratch();
  changes = 0;
});
afterEach(async () => {
  await watcher?.close();
  await dir[Symbol.asyncDispose]();
});

test('a file written in place is one change for one burst', async () => {
  writeFileSync(at('troupe.json'), '0');
  begin(at('troupe.json'));
  await changed(() => {
    for (let step = 1; step <= 20; step++) writeFileSync(at('troupe.json'), `${step}`);
  });
  await changed(() => writeFileSync(at('troupe.json'), 'again'));
});

test('a file replaced by a rename is seen every time', async () => {
  writeFileSync(at('troupe.json'), '0');
  begin(at('troupe.json'));
  for (const text of ['1', '2', '3']) {
    await changed(() => {
      writeFileSync(at('.troupe.json.tmp'), text);
      renameSync(at('.troupe.json.tmp'), at('troupe.json'));
    });
  }
});

test('an editor that moves the old file away first is one change', async () => {
  writeFileSync(at('troupe.json'), '0');
  begin(at('troupe.json'));
  await changed(() => {
    renameSync(at('troupe.json'), at('troupe.json~'));
    writeFileSync(at('troupe.json'), '1');
    rmSync(at('troupe.json~'));
  });
});

test('a file in folders that do not exist yet is seen when it comes, goes, and comes again', async () => {
  begin(at('one', 'two', 'troupe.json'));
  for (const text of ['1', '2']) {
    await changed(() => {
      mkdirSync(at('one', 'two'), { recursive: true });
      writeFileSync(at('one', 'two', 'troupe.json'), text);
    });
    await changed(() => rmSync(at('one'), { recursive: true }));
  }
});

test('a swap of the links of a mounted volume is seen, as Kubernetes does it', async () => {
  const publish = (version: string) => {
    mkdirSync(at(`..${version}`));
    writeFileSync(at(`..${version}`, 'troupe.json'), version);
    symlinkSync(`..${version}`, at('..data_tmp'));
    renameSync(at('..data_tmp'), at('..data'));
  };
  publish('v1');
  symlinkSync('..data/troupe.json', at('troupe.json'));
  begin(at('troupe.json'));
  await changed(() => publish('v2'));
  await changed(() => publish('v3'));
});

test('a folder on the way that is a link is followed, and so is the file it leads to', async () => {
  for (const version of ['v1', 'v2']) {
    mkdirSync(at(version));
    writeFileSync(at(version, 'troupe.json'), version);
  }
  symlinkSync('v1', at('current'));
  begin(at('current', 'troupe.json'));
  await changed(() => writeFileSync(at('v1', 'troupe.json'), 'edited'));
  await changed(() => {
    symlinkSync('v2', at('next'));
    renameSync(at('next'), at('current'));
  });
  await changed(() => writeFileSync(at('v2', 'troupe.json'), 'edited too'));
});

test('neighbours, a touch without a change, and links that lead in a circle are no changes', async () => {
  symlinkSync('circle', at('circle'));
  const other = watchConfig(at('circle', 'troupe.json'), () => expect.unreachable());
  writeFileSync(at('troupe.json'), '0');
  begin(at('troupe.json'));
  writeFileSync(at('neighbour.json'), '1');
  writeFileSync(at('troupe.json'), '0');
  await changed(() => writeFileSync(at('troupe.json'), '1'));
  await other.close();
});

test('a busy neighbour cannot put the news off for ever', async () => {
  writeFileSync(at('troupe.json'), '0');
  begin(at('troupe.json'));
  const noise = setInterval(() => writeFileSync(at('noise'), `${Math.random()}`), 10);
  try {
    await changed(() => writeFileSync(at('troupe.json'), '1'));
  } finally {
    clearInterval(noise);
  }
});

test('after it is closed it says nothing', async () => {
  writeFileSync(at('troupe.json'), '0');
  begin(at('troupe.json'));
  await watcher?.close();
  writeFileSync(at('troupe.json'), '1');
  const witness = { changes: 0 };
  const second = watchConfig(at('troupe.json'), () => witness.changes++);
  writeFileSync(at('troupe.json'), '2');
  await eventually(() => expect(witness.changes).toBe(1));
  expect(changes).toBe(0);
  await second.close();
});

function begin(path: string): void {
  watcher = watchConfig(path, () => changes++);
}

/** Exactly one change is reported for what was done. */
async function changed(act: () => void): Promise<void> {
  const before = changes;
  act();
  await eventually(() => changes > before);
  expect(changes).toBe(before + 1);
}
