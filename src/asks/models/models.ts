// The models that plugins offer, and how one of them answers a server: chosen by what the server prefers, within what the server
// may spend, and its answer is checked. A plugin that throws, lies or hangs costs that one answer.

import type { Logger } from 'pino';
import { check } from '../../config/complaints.ts';
import type { SamplingBudget } from '../../config/schema.ts';
import type {
  Block,
  CreateMessageParams,
  CreateMessageResult,
  Medium,
  Message,
  Model,
  ModelPreferences,
  ModelProvider,
} from '../../plugin/models.ts';
import { LONGEST_MS, modelTable } from '../../plugin/options.ts';
import { type FailureCode, sentence, TroupeError } from '../../protocol/failures.ts';
import { realWorld, type World } from '../../world/world.ts';
import type { Budget } from './budget.ts';
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
export type ModelsOptions = {
  readonly budget: Budget;
  readonly logger: Logger;
  readonly limitMs?: number;
  readonly world?: World;
};

/** So much of an error of a plugin is passed on. */
const MOST_CHARACTERS = 500;

type Offer = Model & { readonly plugin: string; readonly provider: ModelProvider };

export function createModels({ budget, logger, limitMs = LONGEST_MS, world = realWorld }: ModelsOptions): Models {
  let offers: readonly Offer[] = [];

  async function generate({ server, budget: limits, params: written, signal }: Generation): Promise<Buffer> {
    const params = readParams(written);
    const { model: offer, why } = chooseModel(offers, params.modelPreferences ?? {}, needsOf(params.messages));
    if (!offer) throw new TroupeError('unavailable', why);
    const prompt = estimate(params);
    const { maxTokens, book } = budget.reserve(server, limits, { prompt, maxTokens: params.maxTokens });
    const { name, plugin, provider } = offer;
    const startedAt = world.now();
    let tokens = 0;
    try {
      const request = { model: name, params: { ...params, maxTokens } };
      const given = await within(world, limitMs, signal, (stop) => provider.generate(request, stop));
      const result = Buffer.from(JSON.stringify(resultOf(given?.result, name)));
      // A plugin that does not count its tokens is charged by length.
      tokens = counted(given?.tokens) || prompt + Math.ceil(result.length / CHARACTERS_A_TOKEN);
      const problem = checkResult(written, result);
      if (problem) throw new TroupeError('rejected', problem);
      const ms = Math.round(world.now() - startedAt);
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

/** As plugins get the params: the content of a message is a list, and so is that of a tool's result. */
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
/** About the tokens of an image, or of some seconds of sound. */
const MEDIUM_TOKENS = 1_500;

/** The tokens of a request, estimated: text by its length, images and sound at a flat rate. */
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

/** As servers know a result: a single block is no list, which servers of older versions would not understand. */
function resultOf(result: CreateMessageResult | undefined, name: string): object {
  if (!Array.isArray(result?.content)) throw new Error('the plugin returned no content');
  const { content, model, stopReason } = result;
  const blocks = content.length === 0 ? [{ type: 'text', text: '' }] : content;
  return { role: 'assistant', content: blocks.length === 1 ? blocks[0] : blocks, model: model || name, stopReason };
}

/** Resolves as the work does. If that takes too long, or the signal is aborted, the work is told to stop and not waited for. */
function within<Value>(
  world: World,
  ms: number,
  signal: AbortSignal,
  work: (stop: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const stop = new AbortController();
  return new Promise((resolve, reject) => {
    const stopTimer = world.after(ms, () => giveUp('timeout', `it gave no answer in ${ms / 1_000} s`));
    const withdrawn = () => giveUp('cancelled', 'nobody waits for its answer any more');
    const done = () => {
      stopTimer();
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

// ── Which of our models answers ──────────────────────────────────────────────

export type Choice<Offer extends Model> =
  | { readonly model: Offer; readonly why?: undefined }
  | { readonly model?: undefined; readonly why: string };

/**
 * A server names no model: it hints at names and says what matters to it, and the owner's table says which model is how cheap,
 * how fast and how capable. `offers` are in the configured order, which decides where nothing else does. `needs` is what the
 * messages hold.
 */
export function chooseModel<Offer extends Model>(
  offers: readonly Offer[],
  preferences: ModelPreferences,
  needs: readonly Medium[],
): Choice<Offer> {
  const able = offers.filter(({ takes = [] }) => needs.every((medium) => takes.includes(medium)));
  const candidates = hinted(able, preferences) ?? able;
  const scores = candidates.map((offer) => scoreOf(offer, preferences));
  const model = candidates[scores.indexOf(Math.max(...scores))];
  return model ? { model } : { why: whyNone(offers, needs) };
}

/** What a model must take to be shown these messages. */
export function needsOf(messages: readonly Message[]): Medium[] {
  const types = new Set(messages.flatMap(({ content }) => content.map(({ type }) => type)));
  return (['image', 'audio'] as const).filter((medium) => types.has(medium));
}

/** The models whose name contains the first hint that fits any model; case does not matter. */
function hinted<Offer extends Model>(offers: readonly Offer[], { hints }: ModelPreferences): Offer[] | undefined {
  for (const hint of Array.isArray(hints) ? hints : []) {
    const name: unknown = hint?.name;
    if (typeof name !== 'string' || name === '') continue;
    const meant = offers.filter((offer) => offer.name.toLowerCase().includes(name.toLowerCase()));
    if (meant.length > 0) return meant;
  }
  return undefined;
}

/** The same for all models when the server has no preference, so that the first one is chosen. */
function scoreOf({ cost, speed, intelligence }: Model, preferences: ModelPreferences): number {
  const { costPriority, speedPriority, intelligencePriority } = preferences;
  return (
    weight(costPriority) * (1 - cost) + weight(speedPriority) * speed + weight(intelligencePriority) * intelligence
  );
}

const weight = (priority: unknown): number =>
  typeof priority === 'number' && priority > 0 ? Math.min(priority, 1) : 0;

function whyNone(offers: readonly Model[], needs: readonly Medium[]): string {
  if (offers.length === 0) return 'no plugin offers a model; configure sampling-openai or sampling-anthropic';
  return `no configured model takes ${needs.join(' and ')}; add one that does, with it in "takes"`;
}
