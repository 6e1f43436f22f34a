// Where the bundle begins: it takes the code that V8 made of a file at build time instead of making it again, which is half
// of what loading the daemon costs. V8 refuses code that another version of it made, and then compiles as ever.

import { readFileSync, statSync } from 'node:fs';
import { createRequire, wrap } from 'node:module';
import { dirname, sep } from 'node:path';
import { Script } from 'node:vm';
import { underUsualFlags } from './world/young.ts';

type Loaded = { exports: unknown; require(id: string): unknown };
type Handlers = Record<string, (module: Loaded, file: string) => void>;

/** How Node loads a file for `require`, by the ending of its name. */
const { extensions } = createRequire(import.meta.url) as unknown as { extensions: Handlers };

/** What Node puts around the text of a module. */
const [BEFORE, AFTER] = wrap('@')
  .split('@')
  .map((text) => Buffer.from(text)) as [Buffer, Buffer];

export function loadWithCode(folder: string): void {
  const usual = extensions['.js'] as Handlers[string];
  extensions['.cjs'] = (module, file) => {
    const code = file.startsWith(folder + sep) && codeOf(file);
    if (code) run(module, file, code);
    else usual(module, file);
  };
}

/** For the build: calls back with each file of the folder and what V8 has made of it by then, when all have been loaded. */
export function codeWhileLoading(folder: string, load: () => void, keep: (file: string, code: Buffer) => void): void {
  const scripts = new Map<string, Script>();
  extensions['.cjs'] = (module, file) => {
    scripts.set(file, run(module, file));
  };
  load();
  for (const [file, script] of scripts) if (file.startsWith(folder)) keep(file, script.createCachedData());
}

function run(module: Loaded, file: string, cachedData?: Buffer): Script {
  // As one piece: joined as strings V8 would copy them again.
  const text = Buffer.concat([BEFORE, readFileSync(file), AFTER]).toString();
  const script = underUsualFlags(() => new Script(text, { filename: file, ...(cachedData && { cachedData }) }));
  const require = (id: string) => module.require(id);
  script.runInThisContext().call(module.exports, module.exports, require, module, file, dirname(file));
  return script;
}

function codeOf(file: string): Buffer | undefined {
  const code = `${file}.code`;
  try {
    // V8 looks at the length of the text only: whoever changes it by hand is to see that.
    return statSync(file).mtimeMs > statSync(code).mtimeMs ? undefined : readFileSync(code);
  } catch {
    return undefined; // it has none
  }
}
