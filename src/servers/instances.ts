// Who shares a server's process. The owner's is always there; with narrower sharing each further principal gets an
// instance of its own on its first call, which goes to sleep when it is not used.

import type { ServerConfig } from '../config/schema.ts';

const OWNER = '_';
const IDLE_STOP_MS = 600_000;
export const MAX_INSTANCES = 32;

export const instanceName = (server: string, principal: string): string => `${server}@${principal}`;

/** Whose instance it is. A server's own name has no `@`. */
export const principalOf = (instance: string): string =>
  instance.includes('@') ? instance.slice(instance.indexOf('@') + 1) : OWNER;

/** The configuration of a principal's own instance, or undefined when it shares the owner's. */
export function ownInstance(config: ServerConfig, principal: string): ServerConfig | undefined {
  if (principal === OWNER || config.settings.share === 'all') return undefined;
  const idleStopMs = config.settings.idleStopMs || IDLE_STOP_MS;
  return { ...config, settings: { ...config.settings, idleStopMs } };
}

/** A server's new configuration as its instance of that name has it: a further principal's keeps its own patience. */
export const fitting = (name: string, config: ServerConfig): ServerConfig =>
  name === config.name ? config : (ownInstance(config, principalOf(name)) ?? config);

/** In these states an instance does nothing for its principal. */
export const isSpare = (state: string): boolean => ['asleep', 'failed', 'stopped'].includes(state);
