// Starts and stops the plugins that the configuration names. One that fails is reported and left out, unless the
// configuration says that the daemon must not run without it.

import { existsSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Logger } from 'pino';
import { mendName } from '../config/names.ts';
import type { Config, PluginConfig } from '../config/schema.ts';
import type { PluginStatus } from '../operations/status.ts';
import type { Plugin, Troupe } from '../plugin/plugin.ts';
import { sentence, TroupeError } from '../protocol/failures.ts';

export type PluginHost = { readonly status: readonly PluginStatus[]; close(): Promise<void> };

export async function startPlugins(
  wanted: Config['plugins'],
  viewFor: (name: string) => Troupe,
  logger: Logger,
): Promise<PluginHost> {
  const running: { name: string; resource: AsyncDisposable }[] = [];
  const status: PluginStatus[] = [];

  async function close(): Promise<void> {
    for (const { name, resource } of running.splice(0).reverse()) {
      try {
        await resource[Symbol.asyncDispose]();
      } catch (error) {
        logger.warn(`plugin ${name} did not stop well: ${sentence(error)}`);
      }
    }
  }

  for (const each of wanted) {
    const { name, options, required } = each;
    try {
      const plugin = await load(each);
      // A path is no token of a subject: in the log and on the bus a plugin has the name that it gives itself.
      const view = viewFor(mendName(plugin.name ?? name));
      running.push({ name, resource: await plugin.start(view, plugin.parse(options)) });
      status.push({ name, state: 'running' });
    } catch (cause) {
      const error = sentence(cause);
      status.push({ name, state: 'failed', error });
      logger.error({ plugin: name }, `plugin ${name} did not start: ${error}`);
      if (!required) continue;
      await close();
      throw new TroupeError('invalid', `plugin ${name} is required and did not start: ${error}`, { cause });
    }
  }
  return { status, close };
}

async function load({ name, from }: PluginConfig): Promise<Plugin> {
  const { plugin } = (await import(pathToFileURL(moduleOf(name, from)).href)) as { plugin?: Plugin };
  if (!plugin?.start || !plugin.parse) throw new Error('the module exports no `plugin`');
  return plugin;
}

/** A folder of `plugins/`, or, from the folder of the configuration on, a path or the name of a package. */
function moduleOf(name: string, from: string): string {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const shipped = fileURLToPath(new URL(`../../plugins/${name}/index.${extension}`, import.meta.url));
  if (/^[a-z0-9-]+$/.test(name) && existsSync(shipped)) return shipped;
  if (isBuiltin(name)) throw new Error('there is no such plugin');
  try {
    return createRequire(join(from, 'troupe.json')).resolve(name);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'MODULE_NOT_FOUND') throw new Error('there is no such plugin', { cause });
    if (code !== 'ERR_PACKAGE_PATH_NOT_EXPORTED') throw cause;
    throw new Error('its package.json exports no "default" module; add one to "exports"', { cause });
  }
}
