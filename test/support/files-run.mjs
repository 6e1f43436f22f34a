// Preloaded (`node --import`), it tells which files of ours a process has run a function of since it was last asked: at each
// SIGUSR2 it writes their paths, as a JSON array, into the next file of the directory that TROUPE_TEST_FILES names: 1, 2, 3 …

import { renameSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { join } from 'node:path';
import { isMainThread } from 'node:worker_threads';

const folder = process.env.TROUPE_TEST_FILES;

if (folder && isMainThread) {
  const session = new Session();
  let count = 0;
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  process.on('SIGUSR2', () =>
    session.post('Profiler.takePreciseCoverage', (_, { result }) => {
      const ran = result.filter(({ functions }) => functions.some(({ ranges }) => ranges[0].count > 0));
      const files = ran.flatMap(({ url }) => /\/dist\/(?:src\/)?(.*)\.js$/.exec(url)?.[1] ?? []);
      const path = join(folder, String(++count));
      writeFileSync(`${path}.new`, JSON.stringify(files.map((file) => `${file}.ts`)));
      renameSync(`${path}.new`, path);
    }),
  );
}
