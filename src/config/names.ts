// Names of servers: one token of a NATS subject, one word of a command line, one part of a tool's name.
// A name that breaks the rule is never changed silently; the mended one is only proposed.

const RULE = /^[a-z0-9_-]{1,63}$/;

export const NAME_RULE = '[a-z0-9_-]{1,63}';

export function isServerName(name: string): boolean {
  // `__proto__` fits the rule but is no safe key of any object.
  return RULE.test(name) && name !== '__proto__';
}

/** The nearest valid name: "My Files (v2)" becomes "my-files-v2". */
export function mendName(name: string): string {
  const plain = name
    .normalize('NFKD')
    .replace(/\p{Mark}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, 63)
    .replace(/-+$/, '');
  if (isServerName(plain)) return plain;
  return plain.replace(/^[_-]+|[_-]+$/g, '') || 'server';
}

/** What a daemon is called on the bus and in the audit: after its machine, and itself if it has a name. */
export const daemonName = (host: string, instance: string | undefined): string =>
  instance === undefined ? mendName(host) : `${mendName(host)}-${instance}`;

/** Comparing costs the product of both lengths, and one of the words may come from a stranger. */
const LONGEST_WORD = 64;
const LONGEST_UNIT = 5;

const isLike = (candidate: string, word: string, allowed: number): boolean =>
  Math.abs(candidate.length - word.length) <= allowed || candidate.toLowerCase().includes(word.toLowerCase());

/** The word of the list that was probably meant, if any is near enough. */
export function nearest(word: string, words: readonly string[]): string | undefined {
  if (word.length > LONGEST_WORD) return undefined;
  const typed = word.toLowerCase();
  const allowed = Math.ceil(word.length / 3) + LONGEST_UNIT;
  const ranked = words
    .filter((candidate) => candidate.length <= LONGEST_WORD && isLike(candidate, word, allowed))
    .map((candidate) => ({ candidate, distance: distanceOf(typed, candidate.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance);
  const [best] = ranked;
  return best && best.distance <= Math.ceil(word.length / 3) ? best.candidate : undefined;
}

/** Edits from one word to the other; a unit may be left out for nothing, the beginning or the end for the price of one. */
function distanceOf(typed: string, known: string): number {
  const stem = known.replace(/(ms|bytes)$/, '');
  const isPart = typed.length > 2 && (known.startsWith(typed) || known.endsWith(typed));
  return Math.min(editsBetween(typed, known), editsBetween(typed, stem), isPart ? 1 : Number.POSITIVE_INFINITY);
}

function editsBetween(typed: string, known: string): number {
  let row = Array.from({ length: known.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...typed].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...known].entries()) {
      const [above = 0, left = 0, corner = 0] = [row[j + 1], next[j], row[j]];
      next.push(Math.min(above + 1, left + 1, corner + (letter === other ? 0 : 1)));
    }
    row = next;
  }
  return row[known.length] ?? 0;
}

/** A process beside the server's own: of another principal or session (`@`), or a further one of a pool (`~`). */
export const isInstance = (name: string): boolean => /[@~]/.test(name);
