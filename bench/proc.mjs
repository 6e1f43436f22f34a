// What Linux says of a process and of the machine: CPU time in ticks of 10 ms, anonymous memory, descriptors, descendants.

import { readdirSync, readFileSync } from 'node:fs';

const TICK_US = 10_000;

/** User and system time of the process with all its threads, in µs; 0 when it is gone. Of several: the sum. */
export function cpuOf(pid) {
  if (Array.isArray(pid)) return pid.reduce((sum, each) => sum + cpuOf(each), 0);
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

export const descriptorsOf = (pid) => readdirSync(`/proc/${pid}/fd`).length;

/** Every process under this one whose command line has the text, however deep. */
export function descendantsOf(pid, text) {
  const children = new Map();
  for (const name of readdirSync('/proc').filter((each) => /^\d+$/.test(each))) {
    const parent = parentOf(name);
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const found = [];
  const queue = [pid];
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    queue.push(...(children.get(next) ?? []));
    if (next !== pid && commandOf(next).includes(text)) found.push(next);
  }
  return found;
}

function parentOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return undefined; // it ended while we were looking
  }
}

/** A shell that runs the command has it in its own line too, as one word: that is not the command. */
function commandOf(pid) {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    return words.includes('-c') ? '' : words.join(' ');
  } catch {
    return '';
  }
}
