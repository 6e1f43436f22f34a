// Each system call that can fail, with each of its errors, once: part of every test run. `npm run faults` throws dice.

import { expect, it } from 'vitest';
import { ERRNOS, hasFaults, type Syscall } from '../support/faults.ts';
import { faultRounds, type Order, UNASKED } from './faults-rounds.ts';

const orders = Object.entries(ERRNOS)
  .flatMap(([syscall, errnos]) => errnos.map((errno): Order => ({ syscall: syscall as Syscall, errno, times: 3 })))
  .filter(({ syscall }) => !UNASKED.includes(syscall));

it.runIf(hasFaults)(
  'goes on, answers every call and is well again, whatever the kernel refuses',
  async () => {
    const told = await faultRounds(orders);
    expect(told.failed).toBeGreaterThan(orders.length);
    expect(told.answered).toBeGreaterThan(told.refused);
  },
  120_000,
);
