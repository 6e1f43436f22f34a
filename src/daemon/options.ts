// What every part of the daemon is given: where things are, what the configuration says, whom to tell, and how to stop.

import type { Subjects } from '../bus/subjects.ts';
import type { Paths } from '../config/paths.ts';
import type { Config } from '../config/schema.ts';
import type { Log } from '../telemetry/log.ts';
import type { Limits, Shares } from '../world/limits.ts';
import type { Announcer } from './announce.ts';
import type { Configuration } from './configuration.ts';

export type PartsOptions = {
  readonly paths: Paths;
  readonly env: NodeJS.ProcessEnv;
  readonly log: Log;
  readonly config: Config;
  /** The mark of all processes that this life of the daemon starts. */
  readonly mark: string;
  readonly say: Announcer;
  /** What `up --http` was given. */
  readonly http?: string;
  readonly stop: () => void;
  readonly crash: (why: string) => void;
  readonly stateOf: () => string;
};

/** What they are given beside it once the daemon knows who it is. */
export type SharedOptions = PartsOptions & {
  readonly name: string;
  readonly startedAt: number;
  readonly subjects: Subjects;
  readonly configuration: Configuration;
  /** What the machine gives us, as it was at the start, and how it is shared out. */
  readonly limits: Limits;
  readonly shares: Shares;
};
