// The long run: `npm run faults`. So many rounds (TROUPE_FAULTS_ROUNDS, 100 unless told), each with a system call, an error and
// a share of failures that dice choose; TROUPE_CHAOS_SEED replays a run.

import { expect, it } from 'vitest';
import { ERRNOS, hasFaults, type Syscall } from '../support/faults.ts';
import { faultRounds, type Order, UNASKED } from './faults-rounds.ts';
import { chosenSeed, random } from './random.ts';

const rounds = Number(process.env.TROUPE_FAULTS_ROUNDS ?? 100);

it(`goes on over ${rounds} rounds of refused system calls`, async () => {
  const seed = chosenSeed();
  const dice = random(seed);
  console.log(`seed ${seed}`);
  expect(hasFaults, 'a C compiler is needed: cc').toBe(true);
  const syscalls = (Object.keys(ERRNOS) as Syscall[]).filter((each) => !UNASKED.includes(each));
  const orders = Array.from({ length: rounds }, (): Order => {
    const syscall = dice.oneOf(syscalls);
    const chance = { permille: dice.between(20, 700), seed: dice.between(1, 1_000_000) };
    return { syscall, errno: dice.oneOf(ERRNOS[syscall]), ...chance };
  });
  const told = await faultRounds(orders, { repeats: 3, env: { TROUPE_CGROUP: dice.oneOf(['on', 'off']) } });
  console.log(`${told.failed} system calls refused, ${told.answered} calls answered, ${told.refused} refused`);
  expect(told.failed).toBeGreaterThan(rounds);
}, 3_600_000);
