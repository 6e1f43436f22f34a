// Where the bundle begins: it takes the code that V8 made of a file at build time instead of making it again, which is half
// of what loading the daemon costs. Code that another Node made is not taken, and V8 then compiles as ever.

import { readFileSync, statSync } from 'node:fs';
import { createRequire, wrap } from 'node:module';
import { dirname, sep } from 'node:path';
import { Script } from 'node:vm';
import { underUsualFlags } from './world/young.ts';

type Loaded = { exports: unknown };
type Handlers = Record<string, (module: Loaded, file: string) => void>;

/** How Node loads a file for `require`, by the ending of its name. */
const { extensions } = createRequire(import.meta.url) as unknown as { extensions: Handlers };

/** What Node puts around the text of a module. */
const [BEFORE, AFTER] = wrap('@')
  .split('@')
  .map((text) => Buffer.from(text)) as [Buffer, Buffer];

/** V8 knows its own version in code that it has made, but neither what Node has changed in it nor for which processor it is. */
export const codeFileOf = (file: string): string => `${file}.${process.version}-${process.arch}.code`;

export function loadWithCode(folder: string): void {
  const usual = extensions['.js'] as Handlers[string];
  extensions['.cjs'] = (module, file) => {
    const script = file.startsWith(folder + sep) && keptScriptOf(file);
    if (script) run(script, module, file);
    else usual(module, file);
  };
}

/** For the build: calls back with each file of the folder and what V8 has made of it by then, when all have been loaded. */
export function codeWhileLoading(folder: string, load: () => void, keep: (file: string, code: Buffer) => void): void {
  const scripts = new Map<string, Script>();
  extensions['.cjs'] = (module, file) => {
    const script = scriptOf(file);
    scripts.set(file, script);
    run(script, module, file);
  };
  load();
  for (const [file, script] of scripts) if (file.startsWith(folder)) keep(file, script.createCachedData());
}

/** Here nothing holds the bytes of the text and the code any more, which would live on while the module loads others. */
function run(script: Script, module: Loaded, file: string): void {
  script.runInThisContext().call(module.exports, module.exports, createRequire(file), module, file, dirname(file));
}

function scriptOf(file: string, cachedData?: Buffer): Script {
  // As one piece: joined as strings V8 would copy them again.
  const text = Buffer.concat([BEFORE, readFileSync(file), AFTER]).toString();
  return underUsualFlags(() => new Script(text, { filename: file, ...(cachedData && { cachedData }) }));
}

/** Undefined where no code of it was kept. */
function keptScriptOf(file: string): Script | undefined {
  const code = codeOf(file);
  return code && scriptOf(file, code);
}

function codeOf(file: string): Buffer | undefined {
  const code = codeFileOf(file);
  try {
    // V8 looks at the length of the text only: whoever changes it by hand is to see that.
    return statSync(file).mtimeMs > statSync(code).mtimeMs ? undefined : readFileSync(code);
  } catch {
    return undefined; // it has none
  }
}
