// Where in the sources an error was thrown, though it was the bundle that ran. The maps are read when there is something to
// tell: a daemon that read them at its start would need twice the time for it.

import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, join } from 'node:path';

export function inSources(stack: string): string {
  const maps = new Map<string, SourceMap | undefined>();
  const known = (file: string): SourceMap | undefined => {
    if (!maps.has(file)) maps.set(file, mapOf(file));
    return maps.get(file);
  };
  return stack.replaceAll(/(\/[^\s():]+\.cjs):(\d+):(\d+)/g, (place, file: string, line: string, column: string) => {
    const found = known(file)?.findEntry(Number(line) - 1, Number(column) - 1);
    // What the bundler has added is of no source.
    if (!found || !('originalSource' in found) || typeof found.originalSource !== 'string') return place;
    return `${join(dirname(file), found.originalSource)}:${found.originalLine + 1}:${found.originalColumn + 1}`;
  });
}

function mapOf(file: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8')));
  } catch {
    return undefined; // it is not of the bundle
  }
}
