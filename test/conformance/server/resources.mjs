// The resources that the suite reads: two that stand, one that is watched, and a template.

import { PNG } from './contents.mjs';

export const WATCHED = 'test://watched-resource';

export const resources = [
  { uri: 'test://static-text', name: 'static-text', mimeType: 'text/plain' },
  { uri: 'test://static-binary', name: 'static-binary', mimeType: 'image/png' },
  { uri: WATCHED, name: 'watched-resource', mimeType: 'text/plain' },
];

export const resourceTemplates = [
  { uriTemplate: 'test://template/{id}/data', name: 'template', mimeType: 'application/json' },
];

const bodies = {
  'test://static-text': { text: 'This is the content of the static text resource.' },
  'test://static-binary': { blob: PNG },
  [WATCHED]: { text: 'Watched resource content' },
};

/** What reading a URI gives, or undefined if there is no such resource. */
export function read(uri) {
  const found = resources.find((each) => each.uri === uri);
  if (found) return { contents: [{ uri, mimeType: found.mimeType, ...bodies[uri] }] };
  const [, id] = /^test:\/\/template\/([^/]+)\/data$/.exec(uri) ?? [];
  if (!id) return undefined;
  const text = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
  return { contents: [{ uri, mimeType: 'application/json', text }] };
}
