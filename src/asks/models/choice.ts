// Which of our models answers a server that wants one. A server names no model: it hints at names and says what matters to
// it, and the owner's table says which model is how cheap, how fast and how capable.

import type { Medium, Message, Model, ModelPreferences } from '../../plugin/models.ts';

export type Choice<Offer extends Model> =
  | { readonly model: Offer; readonly why?: undefined }
  | { readonly model?: undefined; readonly why: string };

/** `offers` are in the configured order, which decides where nothing else does. `needs` is what the messages hold. */
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

/** The models that the first hint means which means any: part of the name, however it is spelt. */
function hinted<Offer extends Model>(offers: readonly Offer[], { hints }: ModelPreferences): Offer[] | undefined {
  for (const hint of Array.isArray(hints) ? hints : []) {
    const name: unknown = hint?.name;
    if (typeof name !== 'string' || name === '') continue;
    const meant = offers.filter((offer) => offer.name.toLowerCase().includes(name.toLowerCase()));
    if (meant.length > 0) return meant;
  }
  return undefined;
}

/** The same for all when the server has no preference, so that the first one stays the first. */
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
