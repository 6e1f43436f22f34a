// A change of one file as people know it from `diff -u`: one hunk, from the first line that differs to the last.

const CONTEXT = 3;
/** A minified file is one line; of such a line only what is near the change is shown. */
const LONG = 400;

export function unified(path: string, before: string, after: string): string {
  const [old, next] = [linesOf(before), linesOf(after)];
  const top = commonLength(old, next);
  const tail = Math.min(commonLength(old.toReversed(), next.toReversed()), Math.min(old.length, next.length) - top);
  const from = Math.max(0, top - CONTEXT);
  const [oldTo, nextTo] = [old.length - tail, next.length - tail];
  const below = old.slice(oldTo, oldTo + CONTEXT);
  const [removed, added] = [old.slice(top, oldTo), next.slice(top, nextTo)];
  const above = old.slice(from, top);
  const count = (lines: readonly string[]): number => above.length + lines.length + below.length;
  const start = (lines: readonly string[]): number => (count(lines) === 0 ? 0 : from + 1);
  const near = commonLength([...(removed[0] ?? '')], [...(added[0] ?? '')]);
  return [
    `--- ${before === '' ? '/dev/null' : path}`,
    `+++ ${path}`,
    `@@ -${start(removed)},${count(removed)} +${start(added)},${count(added)} @@`,
    ...above.map((line) => ` ${short(line, 0)}`),
    ...removed.map((line) => `-${short(line, near)}`),
    ...added.map((line) => `+${short(line, near)}`),
    ...below.map((line) => ` ${short(line, 0)}`),
  ].join('\n');
}

const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/));

function commonLength(one: readonly string[], other: readonly string[]): number {
  const differs = one.findIndex((each, index) => each !== other[index]);
  return differs < 0 ? Math.min(one.length, other.length) : differs;
}

function short(line: string, near: number): string {
  if (line.length <= LONG) return line;
  const from = Math.max(0, Math.min(near - LONG / 4, line.length - LONG));
  return `${from > 0 ? '…' : ''}${line.slice(from, from + LONG)}${from + LONG < line.length ? '…' : ''}`;
}
