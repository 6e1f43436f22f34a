// Lets models behind an OpenAI-compatible API answer servers: the vendor's own, a gateway's, or one on this machine.

import { address, endpoint, modelOptions, offerModels, type Plugin, readOptions, z } from '../../src/plugin/plugin.ts';
import { requestOf } from './request.ts';
import { readResponse, tokensOf } from './response.ts';

const VENDOR = 'https://api.openai.com/v1';
const isVendor = (baseUrl: string) => new URL(baseUrl).host === new URL(VENDOR).host;

const schema = z
  .strictObject({
    ...modelOptions,
    baseUrl: address(VENDOR),
    /** The vendor's newer models refuse the old name; most others know no new one. */
    maxTokensField: z.enum(['max_tokens', 'max_completion_tokens']).exactOptional(),
  })
  .refine(({ apiKey, baseUrl }) => apiKey !== '' || !isVendor(baseUrl), {
    path: ['apiKey'],
    error: 'is missing; set it, or set baseUrl to a service that needs none',
  });

type Options = z.output<typeof schema>;

export const plugin: Plugin<Options> = {
  name: 'sampling-openai',

  parse: (options) => readOptions('sampling-openai', schema, options),

  start: async (troupe, options) =>
    offerModels(troupe, {
      models: options.models,
      timeoutMs: options.timeoutMs,
      url: endpoint(options.baseUrl, '/chat/completions'),
      headers: { ...(options.apiKey && { authorization: `Bearer ${options.apiKey}` }), ...options.headers },
      requestOf: (request) => requestOf(request, { ...options, maxTokensField: fieldOf(options) }),
      tokensOf,
      readResponse,
    }),
};

const fieldOf = ({ maxTokensField, baseUrl }: Options) =>
  maxTokensField ?? (isVendor(baseUrl) ? 'max_completion_tokens' : 'max_tokens');
