// The versions of MCP that we speak to servers over stdio, oldest first, and what a client must know of each.

export const ERAS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const;

export type Era = (typeof ERAS)[number];

export const LATEST: Era = '2025-11-25';

/** The era of a `protocolVersion`, if we speak it. */
export function eraOf(version: string): Era | undefined {
  return ERAS.find((era) => era === version);
}

type EraFacts = {
  /** Several messages may come in one JSON array. */
  readonly batches: boolean;
  /** A server that completes arguments says so in its capabilities; before, one had to try. */
  readonly completionsDeclared: boolean;
  /** Progress notifications may carry a `message`. */
  readonly progressMessage: boolean;
  /** A server may have a person asked. */
  readonly elicitation: boolean;
  /** It may have an address visited, and refuse a call until that is done (-32042). */
  readonly urls: boolean;
  /** A model may be given tools, and a message to it may have several parts. */
  readonly samplingTools: boolean;
  /** A request may be made a task, whose result is fetched later. */
  readonly tasks: boolean;
};

export const ERA_FACTS = {
  '2024-11-05': {
    ...{ batches: false, completionsDeclared: false, progressMessage: false },
    ...{ elicitation: false, urls: false, samplingTools: false, tasks: false },
  },
  '2025-03-26': {
    ...{ batches: true, completionsDeclared: true, progressMessage: true },
    ...{ elicitation: false, urls: false, samplingTools: false, tasks: false },
  },
  '2025-06-18': {
    ...{ batches: false, completionsDeclared: true, progressMessage: true },
    ...{ elicitation: true, urls: false, samplingTools: false, tasks: false },
  },
  '2025-11-25': {
    ...{ batches: false, completionsDeclared: true, progressMessage: true },
    ...{ elicitation: true, urls: true, samplingTools: true, tasks: true },
  },
} as const satisfies Record<Era, EraFacts>;
