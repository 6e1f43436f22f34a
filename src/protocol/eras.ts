// The versions of MCP that troupe speaks, oldest first, and the codec of each. A version is a file in `eras/` and a line here.

import { codec as v20241105 } from './eras/2024-11-05.ts';
import { codec as v20250326 } from './eras/2025-03-26.ts';
import { codec as v20250618 } from './eras/2025-06-18.ts';
import { codec as v20251125 } from './eras/2025-11-25.ts';
import type { Codec } from './eras/codec.ts';

export type { ClientCapabilities, ServerCapabilities } from './eras/codec.ts';

const CODECS = {
  '2024-11-05': v20241105,
  '2025-03-26': v20250326,
  '2025-06-18': v20250618,
  '2025-11-25': v20251125,
} as const satisfies Record<string, Codec>;

/** A version by its name on the wire. */
export type Era = keyof typeof CODECS;

export const ERAS = Object.keys(CODECS) as readonly Era[];

/** The newest version that is agreed on by `initialize`. */
export const LATEST: Era = '2025-11-25';

export const codecOf = (era: Era): Codec => CODECS[era];

/** The era of a `protocolVersion`, if we speak it. */
export const eraOf = (version: string): Era | undefined => ERAS.find((era) => era === version);
