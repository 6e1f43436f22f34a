// Lets models behind Anthropic's Messages API answer servers.

import { address, endpoint, modelOptions, offerModels, type Plugin, readOptions, z } from '../../src/plugin/plugin.ts';
import { requestOf } from './request.ts';
import { readResponse, tokensOf } from './response.ts';

const schema = z
  .strictObject({
    ...modelOptions,
    baseUrl: address('https://api.anthropic.com'),
    version: z
      .string()
      .regex(/^[\w-]+$/, 'must be a version such as 2023-06-01')
      .prefault('2023-06-01'),
  })
  .refine(({ apiKey }) => apiKey !== '', { path: ['apiKey'], error: 'is missing' })
  .refine(({ models }) => models.every(({ takes }) => !takes.includes('audio')), {
    path: ['models'],
    error: 'must not take audio, because this API does not',
  });

type Options = z.output<typeof schema>;

export const plugin: Plugin<Options> = {
  name: 'sampling-anthropic',

  parse: (options) => readOptions('sampling-anthropic', schema, options),

  start: async (troupe, options) =>
    offerModels(troupe, {
      models: options.models,
      timeoutMs: options.timeoutMs,
      url: endpoint(options.baseUrl, '/v1/messages'),
      headers: { 'x-api-key': options.apiKey, 'anthropic-version': options.version, ...options.headers },
      requestOf: (request) => requestOf(request, options),
      tokensOf,
      readResponse,
    }),
};
