// Which roots are given to servers, and under which name; what is wrong with the others is said once in the log, and shown
// by `troupe roots`.

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Logger } from 'pino';
import { allowance } from '../telemetry/allowance.ts';
import { withoutControls } from '../telemetry/printable.ts';
import { createPlaces, isWithin, pathOf } from './places.ts';
import type { Root, RootSource, RootView } from './root.ts';

export type JudgeOptions = { readonly allowed: () => readonly string[]; readonly logger: Logger };

const WORDS_PER_SECOND = 5;
const MAX_SAID = 1_000;

export function createJudge({ allowed, logger }: JudgeOptions): (from: RootSource, root: Root) => RootView {
  const look = createPlaces();
  const said = new Set<string>();
  const pace = allowance(WORDS_PER_SECOND);

  function realUri(from: RootSource, uri: string): { readonly uri: string } | { readonly problem: string } {
    const named = pathOf(uri);
    if ('problem' in named) return named;
    if (from === 'host' && !mayBeLookedAt(named.path)) return { problem: OUTSIDE };
    const place = look(named.path);
    if ('problem' in place) return place;
    if (from === 'host' && !isAllowed(place.path)) return { problem: OUTSIDE };
    if (from !== 'host' && !place.isDirectory) return { problem: 'is no directory; name the one it lies in' };
    // The owner agreed to that very directory, not to whatever a link may put in its place.
    if (from === 'owner' && place.path !== named.path)
      return { problem: `has become a link to ${place.path}; remove it and add it again` };
    return { uri: pathToFileURL(place.path).href };
  }

  /** By its spelling alone: even to ask what is there could wake, or wait for, a mount that is none of a host's business. */
  const mayBeLookedAt = (path: string): boolean =>
    allowed().some((each) => isWithin(resolve(path), resolve(each))) || isAllowed(resolve(path));

  const isAllowed = (path: string): boolean =>
    allowed().some((each) => {
      const directory = look(each);
      return 'path' in directory && isWithin(path, directory.path);
    });

  function complain(from: RootSource, uri: string, problem: string): void {
    const words = `the root ${withoutControls(uri.slice(0, 300))} (${FROM[from]}) is not given to servers: it ${problem}`;
    if (said.has(words) || !pace.take()) return;
    if (said.size >= MAX_SAID) said.clear();
    said.add(words);
    logger.warn(words);
  }

  return (from, { uri, name }) => {
    const found = realUri(from, uri);
    if ('problem' in found) complain(from, uri, found.problem);
    return { uri, ...found, ...(name && { name }), from };
  };
}

const OUTSIDE =
  'lies outside what x-troupe.roots.allow allows; name a directory there that it lies in, or run troupe roots add';
const FROM: Record<RootSource, string> = {
  ...{ config: 'from x-troupe.roots.list', owner: 'from troupe roots add', host: 'from a host' },
};
