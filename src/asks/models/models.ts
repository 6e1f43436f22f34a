// The models that plugins offer, and how one of them answers a server: chosen by what the server prefers, within what it may
// spend, and checked before anybody believes it. A plugin that throws, lies or hangs costs that one answer.

import type { Logger } from 'pino';
import { check } from '../../config/complaints.ts';
import type { SamplingBudget } from '../../config/schema.ts';
import type { Block, CreateMessageParams, CreateMessageResult, Model, ModelProvider } from '../../plugin/models.ts';
import { LONGEST_MS, modelTable } from '../../plugin/options.ts';
import { type FailureCode, sentence, TroupeError } from '../../protocol/failures.ts';
import type { Budget } from './budget.ts';
import { chooseModel, needsOf } from './choice.ts';
import { checkResult } from './messages.ts';

export type Models = {
  /** Throws a sentence when the table makes no sense. Returns how to take the offer back. */
  offer(plugin: string, provider: ModelProvider): () => void;
  hasModel(): boolean;
  /** The CreateMessageResult. Rejects with a TroupeError, whose sentence names the model and the plugin. */
  generate(wanted: Generation): Promise<Buffer>;
};
export type Generation = {
  readonly server: string;
  readonly budget: SamplingBudget;
  /** Of sampling/createMessage, already found to be in order. */
  readonly params: Buffer;
  readonly signal: AbortSignal;
};
export type ModelsOptions = { readonly budget: Budget; readonly logger: Logger; readonly limitMs?: number };

/** Of what a plugin says went wrong. */
const MOST_CHARACTERS = 500;

type Offer = Model & { readonly plugin: string; readonly provider: ModelProvider };

export function createModels({ budget, logger, limitMs = LONGEST_MS }: ModelsOptions): Models {
  let offers: readonly Offer[] = [];

  async function generate({ server, budget: limits, params: written, signal }: Generation): Promise<Buffer> {
    const params = readParams(written);
    const { model: offer, why } = chooseModel(offers, params.modelPreferences ?? {}, needsOf(params.messages));
    if (!offer) throw new TroupeError('unavailable', why);
    const prompt = estimate(params);
    const { maxTokens, book } = budget.reserve(server, limits, { prompt, maxTokens: params.maxTokens });
    const { name, plugin, provider } = offer;
    const startedAt = performance.now();
    let tokens = 0;
    try {
      const request = { model: name, params: { ...params, maxTokens } };
      const given = await within(limitMs, signal, (stop) => provider.generate(request, stop));
      const result = Buffer.from(JSON.stringify(resultOf(given?.result, name)));
      // Who does not count is counted by length.
      tokens = counted(given?.tokens) || prompt + Math.ceil(result.length / CHARACTERS_A_TOKEN);
      const problem = checkResult(written, result);
      if (problem) throw new TroupeError('rejected', problem);
      const ms = Math.round(performance.now() - startedAt);
      logger.info({ server, plugin, model: name, tokens, ms }, 'a model has answered');
      return result;
    } catch (error) {
      tokens ||= counted((error as { tokens?: unknown } | null)?.tokens);
      const code = error instanceof TroupeError ? error.code : 'rejected';
      throw new TroupeError(code, `model ${name} of plugin ${plugin}: ${sentence(error).slice(0, MOST_CHARACTERS)}`, {
        cause: error,
      });
    } finally {
      book(tokens);
    }
  }

  return {
    offer(plugin, provider) {
      const { data, findings } = check(modelTable, provider?.models, 'models');
      if (!data) throw new Error(`${plugin}: ${findings.map(({ message }) => message).join('; ')}`);
      const added: readonly Offer[] = data.map((model) => ({ ...model, plugin, provider }));
      offers = [...offers, ...added];
      return () => {
        offers = offers.filter((offer) => !added.includes(offer));
      };
    },
    hasModel: () => offers.length > 0,
    generate,
  };
}

/** As a plugin gets it: content is a list, and so is what a tool said. */
function readParams(written: Buffer): CreateMessageParams {
  const params = JSON.parse(written.toString());
  const listed = (content: Block | Block[]) =>
    [content]
      .flat()
      .map((block) => (block.type === 'tool_result' ? { ...block, content: block.content ?? [] } : block));
  return {
    ...params,
    maxTokens: Math.max(1, Math.floor(params.maxTokens)),
    messages: params.messages.map(({ role, content }: { role: string; content: Block | Block[] }) => ({
      role,
      content: listed(content),
    })),
  };
}

const CHARACTERS_A_TOKEN = 4;
/** About what an image, or some seconds of sound, comes to. */
const MEDIUM_TOKENS = 1_500;

/** Before anybody has counted: what is written by its length, images and sound at a flat rate. */
function estimate({ messages, systemPrompt, tools }: CreateMessageParams): number {
  let media = 0;
  const text = JSON.stringify([messages, systemPrompt, tools], (key, value) => {
    if (key !== 'data' || typeof value !== 'string') return value;
    media += 1;
    return '';
  });
  return Math.ceil(text.length / CHARACTERS_A_TOKEN) + media * MEDIUM_TOKENS;
}

const counted = (tokens: unknown): number => (typeof tokens === 'number' && tokens > 0 ? Math.ceil(tokens) : 0);

/** As servers know it: one block is no list, which older ones would not understand. */
function resultOf(result: CreateMessageResult | undefined, name: string): object {
  if (!Array.isArray(result?.content)) throw new Error('the plugin returned no content');
  const { content, model, stopReason } = result;
  const blocks = content.length === 0 ? [{ type: 'text', text: '' }] : content;
  return { role: 'assistant', content: blocks.length === 1 ? blocks[0] : blocks, model: model || name, stopReason };
}

/** What the work comes to, unless it takes too long or nobody wants it any more; then it is told so and not waited for. */
function within<Value>(ms: number, signal: AbortSignal, work: (stop: AbortSignal) => Promise<Value>): Promise<Value> {
  const stop = new AbortController();
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => giveUp('timeout', `it gave no answer in ${ms / 1_000} s`), ms);
    const withdrawn = () => giveUp('cancelled', 'nobody waits for its answer any more');
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', withdrawn);
    };
    function giveUp(code: FailureCode, why: string): void {
      done();
      stop.abort();
      reject(new TroupeError(code, why));
    }
    signal.addEventListener('abort', withdrawn, { once: true });
    if (signal.aborted) return withdrawn();
    const working = Promise.resolve().then(() => work(stop.signal));
    void working.then(resolve, reject).finally(done);
  });
}
