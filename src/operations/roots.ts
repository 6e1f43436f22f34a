// `roots`, `rootsAdd` and `rootsRemove` on the control socket.

import { TroupeError } from '../protocol/failures.ts';
import type { Roots } from '../roots/roots.ts';

export function rootMethods(roots: Pick<Roots, 'list' | 'add' | 'remove'>) {
  return {
    roots: () => ({ roots: roots.list() }),
    rootsAdd: async ({ path, name }: Record<string, unknown>) => ({
      uri: await roots.add(pathOf(path), typeof name === 'string' && name !== '' ? name : undefined),
    }),
    rootsRemove: ({ path }: Record<string, unknown>) => roots.remove(pathOf(path)),
  };
}

function pathOf(path: unknown): string {
  if (typeof path === 'string' && path !== '') return path;
  throw new TroupeError('invalid', 'name a directory, such as troupe roots add ~/projects');
}
