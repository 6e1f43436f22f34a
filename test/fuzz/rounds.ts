// A round of fuzzing: the corpus first, then inputs drawn from a seed until there are enough or the time is up. What it finds is
// narrowed down to as few inputs as it can be, and told with the seed that shows it again.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { random } from '../chaos/random.ts';
import type { House, Sight } from './house.ts';
import type { Stage, Target } from './target.ts';

export type Limits = {
  readonly seed: number;
  readonly inputs: number;
  readonly seconds: number;
  /** The longest that the neighbour may have to wait; a loaded machine needs more than an idle one. */
  readonly slowestMs: number;
};
export type Summary = {
  readonly target: string;
  readonly seed: number;
  readonly inputs: number;
  readonly seconds: number;
  readonly neighbour: number;
  readonly slowestMs: number;
  /** MB of the daemon's own memory after a tenth of the inputs, and after the last. */
  readonly memory: readonly [before: number, after: number];
};

const CORPUS = join(import.meta.dirname, 'corpus');
/** Memory that may be garbage still, or a cache that is bounded but was not full yet. */
const SLACK_MB = 96;

export async function fuzz<Input>(target: Target<Input>, house: House, limits: Limits): Promise<Summary> {
  await using stage = await target.open(house);
  const began = performance.now();
  const seconds = () => (performance.now() - began) / 1000;
  const sights: Sight[] = [];
  let inputs = 0;
  let before = 0;

  async function give(batch: readonly Input[], whence: string): Promise<void> {
    if (batch.length === 0) return;
    const findings = await findingsOf(target, house, stage, batch, limits, sights);
    inputs += batch.length;
    if (findings.length > 0) throw new Error(await report(target, house, limits, batch, findings, whence));
  }

  await give(corpusOf<Input>(target.name), 'the corpus');
  for (let round = 0; inputs < limits.inputs && seconds() < limits.seconds; round++) {
    const seed = (limits.seed + round * 7_919) | 0;
    const size = Math.min(target.batch * 20, limits.inputs - inputs);
    await give(inputsOf(target, seed, size), `seed ${seed}`);
    if (before === 0 && (inputs >= limits.inputs / 10 || seconds() > limits.seconds / 10)) before = house.memory();
  }
  const after = house.memory();
  if (before > 0 && after > before + SLACK_MB)
    throw new Error(`${target.name}: memory grew from ${before} to ${after} MB`);
  return {
    target: target.name,
    seed: limits.seed,
    inputs,
    seconds: Math.round(seconds()),
    neighbour: sights.reduce((sum, { answered }) => sum + answered, 0),
    slowestMs: Math.round(Math.max(...sights.map(({ slowestMs }) => slowestMs))),
    memory: [Math.round(before), Math.round(after)],
  };
}

const VARIANTS = 30;

function inputsOf<Input>({ inputs, vary }: Target<Input>, seed: number, count: number): Input[] {
  if (!vary) return fc.sample(inputs, { seed, numRuns: count });
  const drawn = fc.sample(inputs, { seed, numRuns: Math.ceil(count / VARIANTS) + 1 });
  const dice = random(seed);
  return Array.from({ length: count }, (_, at) => {
    const input = drawn[at % drawn.length] as Input;
    return at < drawn.length ? input : vary(input, dice.oneOf(drawn), dice);
  });
}

/** A line an input, each JSON. */
function corpusOf<Input>(name: string): Input[] {
  const file = join(CORPUS, `${name}.jsonl`);
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

async function findingsOf<Input>(
  target: Target<Input>,
  house: House,
  stage: Stage<Input>,
  inputs: readonly Input[],
  { slowestMs }: Limits,
  sights: Sight[] = [],
): Promise<string[]> {
  const complaints: string[] = [];
  const sight = await house.watched(async () => {
    try {
      await stage.feed(inputs);
    } catch (error) {
      complaints.push(String(error instanceof Error ? error.stack : error));
    }
  }, target.stopsDaemon);
  sights.push(sight);
  if (sight.slowestMs > slowestMs) complaints.push(`the neighbour waited ${Math.round(sight.slowestMs)} ms`);
  return [...complaints, ...sight.findings];
}

/** Halves the inputs for as long as one half still shows something. The daemon must live for it. */
async function report<Input>(
  target: Target<Input>,
  house: House,
  limits: Limits,
  inputs: readonly Input[],
  findings: readonly string[],
  whence: string,
): Promise<string> {
  let few = inputs;
  const isAlive = () => house.d.status().then(Boolean, () => false);
  while (few.length > 1 && (await isAlive())) {
    const middle = Math.ceil(few.length / 2);
    const halves = [few.slice(0, middle), few.slice(middle)];
    let narrower: readonly Input[] | undefined;
    for (const half of halves) {
      await using stage = await target.open(house);
      if ((await findingsOf(target, house, stage, half, limits)).length > 0) {
        narrower = half;
        break;
      }
    }
    if (!narrower) break; // it takes both halves, or did not happen again
    few = narrower;
  }
  const shown = few.slice(0, 5).map((input) => JSON.stringify(input).slice(0, 2_000));
  return `${target.name}, ${whence}: ${findings.slice(0, 5).join('\n')}\n${few.length} of ${inputs.length} inputs show it:\n${shown.join('\n')}`;
}
