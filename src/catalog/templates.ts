// Whether a URI can have come from a template (RFC 6570), to find the server that has it. Lenient, since the server decides
// in the end; and linear in the URI for each expression, so that no server's template can make a read slow.

import type { Entry } from './fetch.ts';
import type { Part } from './merge.ts';

type Matcher = (uri: string) => boolean;

/** They bound what a server's templates can cost a read; no honest template comes near. */
const MAX_TEMPLATES = 1_000;
const MAX_EXPRESSIONS = 10;
const MAX_LENGTH = 2_048;

/** The server with a template that this URI can have come from, if it is the only one. */
export function serverByTemplate(parts: readonly Part[], uri: string): string | undefined {
  const having = parts.filter(({ listing }) => matchersOf(listing.entries).some((matches) => matches(uri)));
  return having.length === 1 ? having[0]?.source.server : undefined;
}

/** Made once for each list: its entries are the same array until the list changes. */
const matchersByList = new WeakMap<readonly Entry[], Matcher[]>();

function matchersOf(entries: readonly Entry[]): Matcher[] {
  const found =
    matchersByList.get(entries) ?? entries.slice(0, MAX_TEMPLATES).flatMap(({ name }) => matcherOf(name) ?? []);
  matchersByList.set(entries, found);
  return found;
}

/** What an expression expands to, if not to nothing: the opener, and then characters other than the stops. */
type Hole = { readonly opener: string; readonly stops: string };
type Piece = string | Hole;

const HOLES: Record<string, Hole> = {
  '': { opener: '', stops: '/?#' },
  '+': { opener: '', stops: '' },
  '#': { opener: '#', stops: '' },
  '.': { opener: '.', stops: '/?#' },
  '/': { opener: '/', stops: '?#' },
  ';': { opener: ';', stops: '/?#' },
  '?': { opener: '?', stops: '#' },
  '&': { opener: '&', stops: '#' },
};

/** Undefined for a text that is no template, or a template that is too long to be tried. */
export function matcherOf(template: string): Matcher | undefined {
  const pieces = template.length > MAX_LENGTH ? undefined : piecesOf(template);
  if (!pieces || pieces.length > 2 * MAX_EXPRESSIONS + 1) return undefined;
  const [first = '', last = ''] = [pieces[0], pieces.at(-1)].map((piece) => (typeof piece === 'string' ? piece : ''));
  return (uri) => {
    const text = uri.length > MAX_LENGTH ? '' : encoded(uri);
    const isTried = text !== '' && text.length <= MAX_LENGTH && text.startsWith(first) && text.endsWith(last);
    return isTried && isMatch(pieces, text);
  };
}

/** Literals and holes in turn. */
function piecesOf(template: string): Piece[] | undefined {
  const pieces: Piece[] = [];
  // Every odd part is what stood between braces.
  for (const [index, part] of template.split(/\{([^{}]*)\}/).entries()) {
    if (index % 2 === 0) {
      if (/[{}]/.test(part)) return undefined;
      if (part) pieces.push(encoded(part));
      continue;
    }
    const [, operator = '', names = ''] = /^([+#./;?&=,!@|]?)(.*)$/s.exec(part) ?? [];
    const hole = HOLES[operator];
    if (!hole || names === '') return undefined;
    pieces.push(hole);
  }
  return pieces;
}

/** Percent-encoded as an expanded template is, where a URI cannot hold a character. */
const encoded = (text: string): string => text.replace(/[^!-~]+/g, (run) => encodeURIComponent(run.toWellFormed()));

/** Follows all indexes at which the pieces so far can end, piece by piece, so that it never has to go back. */
function isMatch(pieces: readonly Piece[], text: string): boolean {
  let places = new Uint8Array(text.length + 1);
  places[0] = 1;
  for (const piece of pieces) {
    const next = new Uint8Array(text.length + 1);
    if (typeof piece === 'string') passLiteral(places, piece, text, next);
    else passHole(places, piece, text, next);
    places = next;
  }
  return places[text.length] === 1;
}

function passLiteral(places: Uint8Array, literal: string, text: string, next: Uint8Array): void {
  for (let at = text.indexOf(literal); at >= 0; at = text.indexOf(literal, at + 1)) {
    if (places[at] === 1) next[at + literal.length] = 1;
  }
}

function passHole(places: Uint8Array, { opener, stops }: Hole, text: string, next: Uint8Array): void {
  let isInside = false;
  for (let at = 0; at <= text.length; at++) {
    const isOpen = places[at] === 1;
    if (isOpen && opener === '') isInside = true;
    if (isOpen || isInside) next[at] = 1;
    const character = text[at] ?? '';
    if (isOpen && opener !== '' && character === opener) isInside = true;
    else if (stops.includes(character)) isInside = false;
  }
}
