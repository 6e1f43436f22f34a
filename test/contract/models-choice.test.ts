// Which model answers: hints in their order as parts of names, then what matters to the server, then the owner's order;
// and never one that cannot see or hear what it is shown.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chooseModel, needsOf } from '../../src/asks/models/models.ts';
import type { Model, ModelPreferences } from '../../src/plugin/models.ts';

const HAIKU: Model = { name: 'claude-haiku-4', cost: 0.2, speed: 0.9, intelligence: 0.4, takes: ['image'] };
const OPUS: Model = { name: 'claude-opus-4', cost: 1, speed: 0.2, intelligence: 1, takes: ['image'] };
const GPT: Model = { name: 'GPT-Audio', cost: 0.6, speed: 0.5, intelligence: 0.7, takes: ['image', 'audio'] };
const LLAMA: Model = { name: 'llama3.2', cost: 0, speed: 0.3, intelligence: 0.2 };
const ALL = [LLAMA, HAIKU, OPUS, GPT];
const chosen = (preferences: ModelPreferences, needs: ('image' | 'audio')[] = []) =>
  chooseModel(ALL, preferences, needs).model?.name;
const hints = (...names: string[]) => ({ hints: names.map((name) => ({ name })) });

describe('chooseModel', () => {
  it.each<[string, ModelPreferences, string]>([
    ['the first of the table when nothing is preferred', {}, 'llama3.2'],
    ['the first when the priorities are all zero', { costPriority: 0, speedPriority: 0 }, 'llama3.2'],
    ['the one whose name holds the hint', hints('opus'), 'claude-opus-4'],
    ['however the hint is spelt', hints('gpt-AUDIO'), 'GPT-Audio'],
    ['by the second hint when the first means none', hints('gemini', 'haiku'), 'claude-haiku-4'],
    ['by the first hint, not by the best of all hints', hints('claude', 'llama'), 'claude-haiku-4'],
    ['among those hinted at, by priority', { ...hints('claude'), intelligencePriority: 1 }, 'claude-opus-4'],
    ['by hint before priority', { ...hints('llama'), intelligencePriority: 1 }, 'llama3.2'],
    ['by priority when no hint means any', { ...hints('gemini'), intelligencePriority: 1 }, 'claude-opus-4'],
    ['cheap', { costPriority: 1 }, 'llama3.2'],
    ['fast', { speedPriority: 1 }, 'claude-haiku-4'],
    ['able', { intelligencePriority: 1 }, 'claude-opus-4'],
    ['fast and able', { speedPriority: 0.5, intelligencePriority: 0.5 }, 'claude-haiku-4'],
    ['able rather than fast', { speedPriority: 0.2, intelligencePriority: 0.8 }, 'claude-opus-4'],
    ['a priority above one counts as one', { speedPriority: 1, costPriority: 50 }, 'claude-haiku-4'],
    ['a priority below zero counts as none', { costPriority: -5, speedPriority: 0.1 }, 'claude-haiku-4'],
    ['an empty hint means nothing', { ...hints(''), speedPriority: 1 }, 'claude-haiku-4'],
  ])('%s', (_, preferences, expected) => expect(chosen(preferences)).toBe(expected));

  it('takes only models that are shown what they can see and hear, whatever is hinted at', () => {
    expect(chosen(hints('llama'), ['image'])).toBe('claude-haiku-4');
    expect(chosen({ intelligencePriority: 1 }, ['image', 'audio'])).toBe('GPT-Audio');
  });

  it('says why there is none', () => {
    expect(chooseModel([], {}, []).why).toMatch(/no plugin offers a model/);
    expect(chooseModel([LLAMA, HAIKU], {}, ['audio']).why).toMatch(/no configured model takes audio/);
  });

  it('is not led astray by what a server writes', () => {
    const odd = { hints: [null, 7, { name: 5 }, {}], costPriority: 'high', speedPriority: Number.NaN };
    expect(chosen(odd as never)).toBe('llama3.2');
    expect(chosen({ hints: 'opus' } as never)).toBe('llama3.2');
  });

  it('knows what messages hold', () => {
    const image = { type: 'image', data: 'AA==', mimeType: 'image/png' } as const;
    const audio = { type: 'audio', data: 'AA==', mimeType: 'audio/wav' } as const;
    expect(needsOf([{ role: 'user', content: [{ type: 'text', text: 'image' }] }])).toEqual([]);
    expect(
      needsOf([
        { role: 'user', content: [audio] },
        { role: 'user', content: [image, image] },
      ]),
    ).toEqual(['image', 'audio']);
  });

  it('chooses for any table and any preference one that no other beats, and the same again', () => {
    const share = fc.double({ min: 0, max: 1, noNaN: true });
    const model = fc.record({ name: fc.stringMatching(/^[ab]{1,3}$/), cost: share, speed: share, intelligence: share });
    const preferences = fc.record(
      {
        hints: fc.array(fc.record({ name: fc.stringMatching(/^[abc]{0,2}$/) })),
        costPriority: fc.double(),
        speedPriority: fc.double(),
        intelligencePriority: fc.double(),
      },
      { requiredKeys: [] },
    );
    const clamp = (n = 0) => (n > 0 ? Math.min(n, 1) : 0);
    fc.assert(
      fc.property(fc.array(model, { minLength: 1 }), preferences, (table, wanted) => {
        const { model: found } = chooseModel(table, wanted as ModelPreferences, []);
        const hint = (wanted.hints ?? []).find(({ name }) => name && table.some((each) => each.name.includes(name)));
        const worth = ({ cost, speed, intelligence }: Model) =>
          clamp(wanted.costPriority) * (1 - cost) +
          clamp(wanted.speedPriority) * speed +
          clamp(wanted.intelligencePriority) * intelligence;
        const rivals = table.filter(({ name }) => !hint || name.includes(hint.name));
        expect(rivals).toContain(found);
        for (const rival of rivals) expect(worth(rival)).toBeLessThanOrEqual(worth(found as Model));
        expect(chooseModel(table, wanted as ModelPreferences, []).model).toBe(found);
      }),
    );
  });
});
