// MCP 2025-06-18: batches are gone, and a server may have a person fill in a form.

import { codec as before } from './2025-03-26.ts';
import type { Codec } from './codec.ts';

export const codec: Codec = {
  ...before,
  allowsBatches: false,
  clientCapabilities({ elicitation, ...declared }) {
    const takesForms = elicitation?.form !== undefined || (elicitation && elicitation.url === undefined);
    return { ...before.clientCapabilities(declared), ...(takesForms && { elicitation: { form: {} } }) };
  },
};
