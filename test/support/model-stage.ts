// A plugin that offers models, run as the daemon runs it: against an API on this machine, with a budget in a real database.

import pino from 'pino';
import { createBudget } from '../../src/asks/models/budget.ts';
import { createModels } from '../../src/asks/models/models.ts';
import type { Plugin, Troupe } from '../../src/plugin/plugin.ts';
import { post } from '../../src/plugin/post.ts';
import { openStore } from '../../src/store/store.ts';
import { KEY, modelApi, type Vendor } from './model-api.ts';
import { scratch } from './scratch.ts';

export const UNBOUNDED = { requestsPerHour: 0, tokensPerHour: 0, maxIterations: 20 };
export const MODELS = [
  { name: 'small-1', cost: 0.1, speed: 0.9, intelligence: 0.2 },
  { name: 'large-1', cost: 0.9, speed: 0.2, intelligence: 0.9, takes: ['image'] },
];
export const user = (content: unknown) => ({ role: 'user', content });
export const assistant = (content: unknown) => ({ role: 'assistant', content });
export const text = (words: string) => ({ type: 'text', text: words });

export async function modelStage(vendor: Vendor, options: object = {}) {
  const api = await modelApi(vendor);
  const dir = await scratch();
  const store = await openStore(dir.path);
  const lines: string[] = [];
  const sink = { write: (line: string) => void lines.push(line) };
  const logger = pino({ level: 'trace' }, sink);
  const models = createModels({ budget: createBudget(store), logger });
  const { plugin } = (await import(`../../plugins/sampling-${vendor}/index.ts`)) as { plugin: Plugin };
  const troupe = { logger, post, models: (provider) => models.offer(plugin.name, provider) } as Troupe;
  const parsed = plugin.parse({ baseUrl: api.baseUrl, apiKey: KEY, models: MODELS, ...options });
  const running = await plugin.start(troupe, parsed);

  return {
    api,
    models,
    plugin,
    stop: () => running[Symbol.asyncDispose](),
    log: () => lines.join(''),
    /** Asked by a server; `maxTokens` is 100 unless told. A text alone is the user's. */
    async ask(params: object | string, signal = new AbortController().signal): Promise<any> {
      const request = typeof params === 'string' ? { messages: [user(text(params))] } : params;
      const body = Buffer.from(JSON.stringify({ maxTokens: 100, ...request }));
      return JSON.parse(
        (await models.generate({ server: 'asker', budget: UNBOUNDED, params: body, signal })).toString(),
      );
    },
    async usage(): Promise<{ requests: number; tokens: number } | undefined> {
      await store.flush();
      return store.get('usage', ['asker', 0, '[]']);
    },
    async [Symbol.asyncDispose]() {
      await running[Symbol.asyncDispose]();
      await store.close();
      await Promise.all([api[Symbol.asyncDispose](), dir[Symbol.asyncDispose]()]);
    },
  };
}
