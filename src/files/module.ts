// A module that somebody else has written, by its path. In a file of its own: V8 does not let code that it kept import by name.

import { pathToFileURL } from 'node:url';

export const importFile = (path: string): Promise<object> => import(pathToFileURL(path).href);
