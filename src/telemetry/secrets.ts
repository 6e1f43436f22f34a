// The secrets that troupe knows of, and how they are kept out of what it says itself: its log, its errors, its events, its
// status. What servers and callers say to each other is theirs and does not pass here.

export type Secrets = {
  /** From now on. What was known before stays known: a server that is being stopped may still say it. */
  readonly learn: (values: Iterable<string>) => void;
  readonly mask: (text: string) => string;
  readonly isIn: (text: string) => boolean;
};

const MASK = '[masked]';
/** A shorter secret is masked only where it stands by itself: it may be a part of any word. */
const LONG = 8;

export function createSecrets(): Secrets {
  const known = new Set<string>();
  /** Compiled when something new is learnt, and not when something is said. */
  let pattern: RegExp | undefined;

  return {
    learn(values) {
      const before = known.size;
      for (const value of values) if (value !== '') known.add(value);
      if (known.size > before) pattern = compiled(known);
    },
    mask: (text) => (pattern ? text.replace(pattern, MASK) : text),
    isIn: (text) => pattern !== undefined && text.search(pattern) >= 0,
  };
}

/** As they are, in JSON, and in an address. The longest comes first, so that no end of it is left over. */
function compiled(secrets: ReadonlySet<string>): RegExp {
  const spellings = new Set([...secrets].flatMap((secret) => [secret, inJson(secret), inAddress(secret)]));
  const sources = [...spellings].sort((one, other) => other.length - one.length).map(sourceOf);
  return new RegExp(sources.join('|'), 'gu');
}

const inJson = (secret: string): string => JSON.stringify(secret).slice(1, -1);
const inAddress = (secret: string): string => encodeURIComponent(secret.toWellFormed());

function sourceOf(spelling: string): string {
  const source = spelling.replace(/[\^$\\.*+?()[\]{}|/]/g, '\\$&');
  return spelling.length < LONG ? `(?<![\\p{L}\\p{N}_])${source}(?![\\p{L}\\p{N}_])` : source;
}
