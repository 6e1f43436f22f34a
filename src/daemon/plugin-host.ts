// Starts and stops the plugins that the configuration names. One that fails is reported and left out, unless the
// configuration says that the daemon must not run without it.

import { isAbsolute } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Logger } from 'pino';
import type { Config } from '../config/schema.ts';
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

  for (const { name, options, required } of wanted) {
    try {
      const plugin = await load(name);
      running.push({ name, resource: await plugin.start(viewFor(name), plugin.parse(options)) });
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

/** A folder of `plugins/`, or a module given by its absolute path. */
async function load(name: string): Promise<Plugin> {
  const isTypeScript = import.meta.url.endsWith('.ts');
  const url = isAbsolute(name)
    ? pathToFileURL(name)
    : new URL(`../../plugins/${name}/index.${isTypeScript ? 'ts' : 'js'}`, import.meta.url);
  if (!isAbsolute(name) && !/^[a-z0-9-]+$/.test(name)) throw new Error(`${name} is not the name of a plugin`);
  const { plugin } = (await import(url.href).catch((cause) => {
    if (cause?.code === 'ERR_MODULE_NOT_FOUND') throw new Error('there is no such plugin', { cause });
    throw cause;
  })) as { plugin?: Plugin };
  if (!plugin?.start || !plugin.parse) throw new Error('the module exports no `plugin`');
  return plugin;
}
