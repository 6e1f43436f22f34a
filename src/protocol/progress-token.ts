// The token under which a caller wants to hear of a request's progress, as JSON text, so that it comes back as it was given.

import { member } from './json.ts';

const META = Buffer.from('"_meta"');

/** Most requests have none, and then nothing is looked for. */
export function progressTokenOf(params: Buffer): string | undefined {
  const meta = params.includes(META) ? member(params, '_meta') : undefined;
  const token = meta && member(meta, 'progressToken')?.toString();
  return token && /^["\d-]/.test(token) ? token : undefined;
}
