// Where the bundle begins: it takes the code that V8 made of a file at build time instead of making it again, which is half
// of what loading the daemon costs. V8 refuses code that another version of it made, and then compiles as ever.

import { readFileSync } from 'node:fs';
import { createRequire, wrap } from 'node:module';
import { dirname } from 'node:path';
import { constants, Script } from 'node:vm';

type Loaded = { exports: unknown; require(id: string): unknown };
type Handlers = Record<string, (module: Loaded, file: string) => void>;

const { extensions } = createRequire(import.meta.url) as unknown as { extensions: Handlers };

/** Called with every script that was run: the build keeps what V8 has made of it. */
export function loadWithCode(folder: string, onRun: (script: Script, file: string) => void = () => {}): void {
  const usual = extensions['.js'] as Handlers[string];
  extensions['.cjs'] = (module, file) => {
    if (!file.startsWith(folder)) return usual(module, file);
    const cachedData = codeOf(file);
    const script = new Script(wrap(readFileSync(file, 'utf8').replace(/^#!.*/, '')), {
      filename: file,
      importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
      ...(cachedData && { cachedData }),
    });
    const run = script.runInThisContext() as (...given: unknown[]) => void;
    const require = (id: string) => module.require(id);
    run.call(module.exports, module.exports, require, module, file, dirname(file));
    onRun(script, file);
  };
}

function codeOf(file: string): Buffer | undefined {
  try {
    return readFileSync(`${file}.code`);
  } catch {
    return undefined; // a build without it, which is only slower
  }
}
