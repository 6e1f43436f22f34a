// The secrets that troupe knows of, and how they are kept out of what it says itself: its log, its errors, its events, its
// status. What servers and callers say to each other is theirs and does not pass here.

export type Secrets = {
  /** From now on. What was known before stays known: a server that is being stopped may still say it. */
  readonly learn: (values: Iterable<string>) => void;
  readonly mask: (text: string) => string;
  /** Whether anything may be to mask in a line of JSON, where a letter may stand for a newline or a tab. */
  readonly mayBeIn: (text: string) => boolean;
};

const MASK = '[masked]';
/** A shorter secret is masked only where it stands by itself: it may be a part of any word. */
const LONG = 8;

export function createSecrets(): Secrets {
  const known = new Set<string>();
  /** Compiled when something new is learnt, and not when something is said. */
  let pattern: RegExp | undefined;
  let hint: RegExp | undefined;

  return {
    learn(values) {
      const before = known.size;
      for (const value of values) if (value !== '') known.add(value);
      if (known.size === before) return;
      pattern = compiled(known, bordered);
      hint = compiled(known, sourceOf);
    },
    mask: (text) => (pattern ? text.replace(pattern, MASK) : text),
    mayBeIn: (line) => hint !== undefined && line.search(hint) >= 0,
  };
}

/** As they are, in JSON, and in an address. The longest comes first, so that no end of it is left over. */
function compiled(secrets: ReadonlySet<string>, toSource: (spelling: string) => string): RegExp {
  const spellings = new Set([...secrets].flatMap((secret) => [secret, inJson(secret), inAddress(secret)]));
  const sources = [...spellings].sort((one, other) => other.length - one.length).map(toSource);
  return new RegExp(sources.join('|'), 'gu');
}

const inJson = (secret: string): string => JSON.stringify(secret).slice(1, -1);
const inAddress = (secret: string): string => encodeURIComponent(secret.toWellFormed());

const sourceOf = (spelling: string): string => spelling.replace(/[\^$\\.*+?()[\]{}|/]/g, '\\$&');

function bordered(spelling: string): string {
  const source = sourceOf(spelling);
  return spelling.length < LONG ? `(?<![\\p{L}\\p{N}_])${source}(?![\\p{L}\\p{N}_])` : source;
}
