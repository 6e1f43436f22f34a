// MCP 2025-11-25: tasks, addresses to be visited (URL elicitation), tools for models, and HTTP streams that are closed early.

import { codec as before } from './2025-06-18.ts';
import type { Codec } from './codec.ts';

export const codec: Codec = {
  ...before,
  hasTasks: true,
  allowsContentLists: true,
  resumesClosedStreams: true,
  serverCapabilities: (declared) => declared,
  /** `elicitation: {}` is what a host of the version before declares, and means forms. */
  clientCapabilities({ elicitation, ...declared }) {
    if (!elicitation) return declared;
    const isBare = elicitation.form === undefined && elicitation.url === undefined;
    return { ...declared, elicitation: isBare ? { ...elicitation, form: {} } : elicitation };
  },
};
