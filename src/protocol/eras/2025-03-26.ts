// MCP 2025-03-26: the only version with batches. Servers declare completions, progress may carry a message.

import { codec as before } from './2024-11-05.ts';
import type { Codec } from './codec.ts';

export const codec: Codec = {
  ...before,
  allowsBatches: true,
  serverCapabilities: ({ tasks, ...declared }) => declared,
  progress: ({ progress, total, message }) => ({ progress, total, message }),
};
