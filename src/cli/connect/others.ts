// What a person is told when a shim starts a daemon: on which state directory, with which configuration, and which other daemons of
// the same user run already. A host that drops the variables of a shell would else get a second daemon without a word.

import { existsSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { Paths } from '../../config/paths.ts';

export function startWords(paths: Paths): string[] {
  const { state, config, instance } = paths;
  const which = existsSync(config) ? config : `the built-in configuration, for there is no ${config}`;
  const others = otherStates(state);
  return [
    `no daemon${instance === undefined ? '' : ` "${instance}"`} runs on ${state}; starting one with ${which}`,
    ...(others.length === 0
      ? []
      : [
          `you have another daemon on ${others.join(', ')}; to use it, set TROUPE_STATE to that in this command's environment`,
        ]),
  ];
}

const LISTENING = /^\S+ \S+ \S+ 00010000 \S+ \S+ +\d+ (\/.*)$/gm;

/** The system shows the name under which a daemon's socket was made, before it took its place (doors/control.ts). */
const DRAFT = /^\.[0-9a-f]{8}$/;

/** The state directories of this user's other daemons. Only Linux lists the sockets that somebody listens on. */
function otherStates(own: string): string[] {
  if (process.platform !== 'linux') return [];
  try {
    const sockets = [...readFileSync('/proc/net/unix', 'utf8').matchAll(LISTENING)].map(([, path = '']) => path);
    const states = sockets.filter((path) => DRAFT.test(basename(path))).map(dirname);
    return [...new Set(states)].filter((state) => state !== own && isMine(`${state}/database`));
  } catch {
    return []; // a system that does not show them
  }
}

const isMine = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.uid === process.geteuid?.();
