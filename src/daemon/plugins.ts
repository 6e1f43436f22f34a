// The plugins that the configuration names, and the daemon as they see it: a few values and a few verbs, each of which may be
// used at any time. A plugin that fails is reported and left out, unless the configuration says that the daemon must not run
// without it.

import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import type { Models } from '../asks/models/models.ts';
import type { Events } from '../bus/events.ts';
import { mendName } from '../config/names.ts';
import type { Config, PluginConfig } from '../config/schema.ts';
import { importFile } from '../files/module.ts';
import type { PluginStatus } from '../operations/status.ts';
import type { Plugin, ServerView, Troupe } from '../plugin/plugin.ts';
import { post } from '../plugin/post.ts';
import { errorObject, sentence, TroupeError } from '../protocol/failures.ts';
import { bundled } from '../protocol/version.ts';
import type { Log } from '../telemetry/log.ts';
import type { Serving } from './serving.ts';

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
  const { plugin } = (await importFile(moduleOf(name, from))) as { plugin?: Plugin };
  if (!plugin?.start || !plugin.parse) throw new Error('the module exports no `plugin`');
  return plugin;
}

/** A folder of `plugins/`, or, from the folder of the configuration on, a path or the name of a package. */
function moduleOf(name: string, from: string): string {
  const shipped = /^[a-z0-9-]+$/.test(name) && fileURLToPath(bundled(`plugins/${name}/index`));
  if (shipped && existsSync(shipped)) return shipped;
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

type ViewOptions = {
  readonly plugin: string;
  /** The servers are there after the plugins. */
  readonly serving: () => Serving;
  readonly events: Pick<Events, 'send'>;
  readonly models: Pick<Models, 'offer'>;
  readonly log: Log;
  readonly watchers: Set<(server: string) => void>;
  readonly root: string;
};

export function pluginView({ plugin, serving, events, models, log, watchers, root }: ViewOptions): Troupe {
  const view = (name: string): ServerView | undefined => {
    const { fleet, catalog } = serving();
    const member = fleet.member(name);
    return member && { name, state: member.state, tools: catalog.get(member.server, 'tools').entries.length };
  };

  const logger = log.logger.child({ plugin });
  const report = (error: unknown) => logger.error(`plugin ${plugin} failed: ${sentence(error)}`);

  return {
    logger,
    servers: () =>
      serving()
        .fleet.members()
        .flatMap(({ name }) => view(name) ?? []),
    watch(listener) {
      const watcher = (name: string) => {
        const server = view(name);
        // Not in the turn of the actor whose state it is: what a plugin throws is the plugin's own trouble.
        if (server) Promise.resolve(server).then(listener).catch(report);
      };
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    call: (server, tool, args) =>
      new Promise((resolve, reject) => {
        const isKnown = serving().fleet.submit({
          requestId: randomUUID(),
          server,
          method: 'tools/call',
          name: tool,
          principal: '_',
          door: 'plugin',
          params: Buffer.from(JSON.stringify({ name: tool, arguments: args })),
          settle: (outcome) => {
            if (outcome.ok) resolve(JSON.parse(outcome.result.toString()));
            else reject(new TroupeError(outcome.failure.code, errorObject(outcome.failure).toString()));
          },
        });
        if (!isKnown) reject(new TroupeError('unknownServer', `there is no server ${server}`));
      }),
    publish: (subject, payload) => events.send(`${root}.plugin.${plugin}.${subject}`, Buffer.from(payload)),
    mask: (mask) =>
      log.addMask((text) => {
        try {
          return mask(text);
        } catch {
          return leftOut(text, plugin); // what could not be masked must not be seen
        }
      }),
    models: (provider) => models.offer(plugin, provider),
    post,
  };
}

/** In the place of a whole line of the log, or of a text in an audit row. */
function leftOut(text: string, plugin: string): string {
  const msg = `left out: plugin ${plugin} failed to mask it`;
  return text.endsWith('\n') ? `${JSON.stringify({ level: 50, time: Date.now(), msg })}\n` : `[${msg}]`;
}
