// What Linux says of a process and of the machine: CPU time in ticks of 10 ms, anonymous memory.

import { readFileSync } from 'node:fs';

const TICK_US = 10_000;

/** User and system time of the process with all its threads, in µs; 0 when it is gone. */
export function cpuOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) * TICK_US;
  } catch {
    return 0;
  }
}

/** All time that the machine's cores did not idle, in µs. */
export function busyMachine() {
  const [user, nice, system, , , irq, softirq, steal] = readFileSync('/proc/stat', 'latin1')
    .slice(4, 200)
    .trim()
    .split(/\s+/)
    .map(Number);
  return (user + nice + system + irq + softirq + steal) * TICK_US;
}

/** Anonymous resident memory in bytes. */
export function anonymousOf(pid) {
  const found = /^RssAnon:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
  return Number(found[1]) * 1024;
}
