// A process whose system calls a test lets fail. For each line of its stdin it does what the line names, and prints how that went.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { createValidator } from '../../dist/src/asks/forms/validator.js';
import { replaceFile } from '../../dist/src/config/file/replace.js';
import { openStore } from '../../dist/src/store/store.js';
import { openLog } from '../../dist/src/telemetry/log.js';

const [directory] = process.argv.slice(2);
const validator = createValidator();
const file = join(directory, 'file');

const WORKS = {
  check: () => validator.check(Buffer.from('{"type":"object"}'), Buffer.from('{}')),
  store: async () => (await openStore(join(directory, 'store'))).close(),
  replace: () => replaceFile(file, 'new', 0o600),
  log: () => openLog(directory, 'info').close(),
  show: () => `${readFileSync(file)} ${readdirSync(directory).filter((name) => name.startsWith('.')).length}`,
};

for await (const line of createInterface({ input: process.stdin })) {
  const outcome = await Promise.resolve()
    .then(() => WORKS[line]())
    .then(
      (value) => `well ${value ?? ''}`,
      ({ message }) => `refused ${message}`,
    );
  process.stdout.write(`${outcome}\n`);
}
validator.close();
