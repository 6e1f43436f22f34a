// `doctor`: looks at everything troupe needs on this machine, launches each server once, and says how to mend.

import { type Check, machineChecks } from './doctor-machine.ts';
import { partChecks } from './doctor-parts.ts';
import type { Output, Style } from './output.ts';
import { type Cli, FAILED, OK } from './verb.ts';

const STYLES = { ok: 'green', warn: 'yellow', fail: 'red' } as const satisfies Record<Check['state'], Style>;

export async function doctor(cli: Cli, { launch }: { readonly launch: boolean }): Promise<number> {
  const { output } = cli;
  const checks: Check[] = [];
  for await (const check of allChecks(cli, launch)) {
    checks.push(check);
    if (!output.json) output.print(lineOf(output, check));
  }
  const failures = checks.filter(({ state }) => state === 'fail').length;
  if (output.json) output.print(JSON.stringify({ ok: failures === 0, checks }));
  else output.say(failures === 0 ? '\nall is well' : `\n${failures} to mend`);
  return failures === 0 ? OK : FAILED;
}

/** In the order in which troupe itself would stumble; each is shown as soon as it is known. */
async function* allChecks(cli: Cli, launch: boolean): AsyncGenerator<Check> {
  yield* machineChecks(cli);
  yield* partChecks(cli, launch);
}

function lineOf(output: Output, { name, state, detail, remedy }: Check): string {
  const head = `${output.paint(STYLES[state], state.padEnd(4))}  ${name.padEnd(12)}  `;
  const indent = ' '.repeat(20);
  const lines = [...output.safe(detail).split('\n'), ...(remedy ? [output.paint('bold', `→ ${remedy}`)] : [])];
  return head + lines.join(`\n${indent}`);
}
