// The audit in memory: what happened since the last page was recorded, as the text of the next one. It lies in one buffer, because
// thousands of small objects that live for a tenth of a second are what collecting garbage costs most for.

import { putDigits } from '../protocol/digits.ts';
import type { World } from '../world/world.ts';
import type { Params } from './statements.ts';

/** One thing that happened. `error` is empty where nothing went wrong. */
export type AuditRecord = {
  readonly at: number;
  readonly daemon: string;
  readonly door: string;
  readonly principal: string;
  readonly requestId: string;
  readonly server: string;
  readonly method: string;
  readonly name: string;
  readonly outcome: string;
  readonly code: number;
  readonly error: string;
  readonly micros: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
};

const PAGE_BYTES = 65_536;
/**
 * Texts are cut, whoever gave them: a record that is larger than its page would make all others unreadable, and a page has to be
 * small enough to be recorded. The sentence of a failure is the longest text that says something.
 */
const MAX_CHARACTERS = 1_024;
const MAX_ERROR_CHARACTERS = 4_096;
/** What many records are about is bounded too: names may be long, and no two alike. */
const MAX_ABOUT_CHARACTERS = 262_144;
/** Only so many of one principal, server and name are looked through: sentences of failures may be no two alike. */
const MOST_ALIKE = 8;
/** The bytes of one character in JSON. */
const MAX_ESCAPED = 6;
/** Its id, and the numbers, brackets and commas. */
const RECORD_ROOM = MAX_CHARACTERS * MAX_ESCAPED + 128;

/** A record waits no longer for its page to be full. */
export const LINGER_MS = 100;

/** The page that is being written, and when it is turned: when it is full, soon after its first record, or when told. */
export class Audit {
  readonly #world: World;
  readonly #record: (page: Params, records: number) => void;
  readonly #page = new Page();
  #stopLingering: (() => void) | undefined;

  /** `record` takes the values of a page's row. */
  constructor(world: World, record: (page: Params, records: number) => void) {
    this.#world = world;
    this.#record = record;
  }

  note(record: AuditRecord): void {
    if (!this.#page.hasRoom) this.turn();
    this.#page.add(record);
    this.#stopLingering ??= this.#world.after(LINGER_MS, () => this.turn());
  }

  turn(): void {
    this.#stopLingering?.();
    this.#stopLingering = undefined;
    const { count } = this.#page;
    if (count > 0) this.#record(this.#page.take(), count);
  }
}

/** What records of a page have in common, as far as it was said of one before. */
type About = Omit<AuditRecord, 'at' | 'requestId' | 'micros' | 'bytesIn' | 'bytesOut'> & { readonly number: number };

class Page {
  readonly #bytes = Buffer.allocUnsafeSlow(PAGE_BYTES);
  #length = 0;
  #count = 0;
  #firstAt = 0;
  #lastAt = 0;
  /** By server, name and principal, the newest last. */
  #abouts = new Map<string, Map<string, Map<string, About[]>>>();
  #aboutTexts: string[] = [];
  #aboutCharacters = 0;

  /** How many records it has. */
  get count(): number {
    return this.#count;
  }

  /** For one more, whatever it says. */
  get hasRoom(): boolean {
    return this.#length + RECORD_ROOM <= PAGE_BYTES && this.#aboutCharacters <= MAX_ABOUT_CHARACTERS;
  }

  /** Byte by byte: a text made of eleven parts, only to be copied, took twice the time. */
  add(record: AuditRecord): void {
    const { at } = record;
    if (this.#count === 0) this.#firstAt = at;
    this.#lastAt = at;
    this.#put(COMMA);
    this.#put(OPEN_BRACKET);
    this.#integer(this.#numberOf(record));
    this.#put(COMMA);
    this.#integer(at - this.#firstAt);
    this.#put(COMMA);
    this.#text(cut(record.requestId));
    this.#put(COMMA);
    this.#integer(record.micros);
    this.#put(COMMA);
    this.#integer(record.bytesIn);
    this.#put(COMMA);
    this.#integer(record.bytesOut);
    this.#put(CLOSE_BRACKET);
    this.#count++;
  }

  #put(byte: number): void {
    this.#bytes[this.#length++] = byte;
  }

  /** What is no whole number would make all records of the page unreadable. */
  #integer(given: number): void {
    const value = Number.isSafeInteger(given) ? given : 0;
    if (value < 0) this.#put(MINUS);
    this.#length = putDigits(this.#bytes, this.#length, Math.abs(value));
  }

  #text(text: string): void {
    const from = this.#length;
    this.#put(QUOTE);
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (!isPlain(code)) {
        this.#length = from + this.#bytes.write(JSON.stringify(text), from);
        return;
      }
      this.#put(code);
    }
    this.#put(QUOTE);
  }

  /** The values of the row that the page becomes; the page is empty afterwards. */
  take(): Params {
    this.#bytes[0] = OPEN_BRACKET; // in the place of the first comma
    const records = Buffer.allocUnsafeSlow(this.#length + 1);
    this.#bytes.copy(records, 0, 0, this.#length);
    records[this.#length] = CLOSE_BRACKET;
    const row = [this.#firstAt, this.#lastAt, this.#count, `[${this.#aboutTexts.join()}]`, records];
    this.#length = 0;
    this.#count = 0;
    this.#abouts = new Map();
    this.#aboutTexts = [];
    this.#aboutCharacters = 0;
    return row;
  }

  #numberOf(record: AuditRecord): number {
    const [server, name] = [cut(record.server), cut(record.name)];
    let byName = this.#abouts.get(server);
    if (!byName) {
      byName = new Map();
      this.#abouts.set(server, byName);
    }
    const principal = cut(record.principal);
    let byPrincipal = byName.get(name);
    if (!byPrincipal) {
      byPrincipal = new Map();
      byName.set(name, byPrincipal);
    }
    let known = byPrincipal.get(principal);
    if (!known) {
      known = [];
      byPrincipal.set(principal, known);
    }
    for (let at = known.length - 1; at >= 0 && at >= known.length - MOST_ALIKE; at--)
      if (isSame(known[at] as About, record)) return (known[at] as About).number;
    const [daemon, door] = [cut(record.daemon), cut(record.door)];
    const [method, outcome, error] = [cut(record.method), cut(record.outcome), cut(record.error, MAX_ERROR_CHARACTERS)];
    const { code } = record;
    const number = this.#aboutTexts.length;
    known.push({ daemon, door, principal, server, method, name, outcome, code, error, number });
    const text = JSON.stringify([daemon, door, principal, server, method, name, outcome, code, error]);
    this.#aboutTexts.push(text);
    this.#aboutCharacters += text.length;
    return number;
  }
}

const isSame = (about: About, record: AuditRecord): boolean =>
  about.code === record.code &&
  about.outcome === cut(record.outcome) &&
  about.door === cut(record.door) &&
  about.method === cut(record.method) &&
  about.error === cut(record.error, MAX_ERROR_CHARACTERS) &&
  about.daemon === cut(record.daemon);

const cut = (text: string, most = MAX_CHARACTERS): string => (text.length > most ? text.slice(0, most) : text);

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const BACKSLASH = 0x5c;

/** One byte, and no escape in JSON. */
const isPlain = (code: number): boolean => code >= 0x20 && code < 0x7f && code !== QUOTE && code !== BACKSLASH;
