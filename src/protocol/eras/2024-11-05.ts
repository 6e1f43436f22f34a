// MCP 2024-11-05, the first version. Later ones say in their files what they changed.

import type { Codec } from './codec.ts';

export const codec: Codec = {
  allowsBatches: false,
  hasTasks: false,
  allowsContentLists: false,
  resumesClosedStreams: false,
  /** There was no capability for completions: a server with prompts or resources might complete their arguments. */
  serverCapabilities({ tasks, completions, ...declared }) {
    const mayComplete = declared.prompts !== undefined || declared.resources !== undefined;
    return { ...declared, ...(mayComplete && { completions: {} }) };
  },
  clientCapabilities({ elicitation, sampling, ...declared }) {
    const { tools, ...plain } = sampling ?? {};
    return { ...declared, ...(sampling && { sampling: plain }) };
  },
  progress: ({ progress, total }) => ({ progress, total }),
};
