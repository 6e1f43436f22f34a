// A JSONC file as text, tree and value at once, so that every complaint can name its line and column, and the report that
// collects the complaints. Reading never throws: an unreadable or broken file is a document with complaints.

import { findNodeAtLocation, type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser';
import { readRegular } from '../../files/regular.ts';
import { sentence } from '../../protocol/failures.ts';
import type { Complaint, Finding, Keys } from '../complaints.ts';

export type Document = {
  readonly path: string;
  readonly text: string;
  readonly tree: Node | undefined;
  readonly value: unknown;
  /** Why the file could not be read, or every error of syntax. */
  readonly complaints: Complaint[];
};

const DEEPEST = 100;

export function readDocument(path: string): Document {
  try {
    return parseDocument(path, readRegular(path).toString('utf8'));
  } catch (error) {
    return { path, text: '', tree: undefined, value: undefined, complaints: [unreadable(path, error)] };
  }
}

export function parseDocument(path: string, raw: string): Document {
  const text = raw.replace(/^\uFEFF/, '');
  const errors: ParseError[] = [];
  const tree = parseTree(text, errors, { allowTrailingComma: true });
  const complaints = withoutRepeats(errors).map(({ error, offset }) => ({
    path,
    ...positionAt(text, offset),
    message: tree ? syntaxSentence(printParseErrorCode(error)) : 'the file is empty; write { "mcpServers": {} }',
  }));
  return { path, text, tree, value: tree && plain(tree), complaints };
}

function complaintOf(document: Document, { keys, at, message }: Finding): Complaint {
  return { path: document.path, ...positionAt(document.text, offsetOf(document.tree, keys, at)), message };
}

/** A complaint for each key that an object has more than once; JSON itself would let the last one win. */
function repeatedKeys(document: Document, node: Node | undefined): Complaint[] {
  const seen = new Set<string>();
  return (node?.children ?? []).flatMap((child) => {
    if (child.type !== 'property') return repeatedKeys(document, child);
    const [key, value] = child.children ?? [];
    if (!key || !value) return []; // a remnant of broken syntax
    const name = String(key.value);
    const inner = repeatedKeys(document, value);
    if (!seen.has(name)) {
      seen.add(name);
      return inner;
    }
    const message = `${JSON.stringify(name)} is defined twice in the same object; remove one of them`;
    return [{ path: document.path, ...positionAt(document.text, child.offset), message }, ...inner];
  });
}

function offsetOf(tree: Node | undefined, keys: Keys, at: Finding['at']): number {
  if (!tree) return 0;
  const node = findNodeAtLocation(tree, [...keys]);
  // A missing thing is reported where its owner stands.
  if (!node) return offsetOf(tree, keys.slice(0, -1), 'key');
  return at === 'key' && node.parent?.type === 'property' ? node.parent.offset : node.offset;
}

function positionAt(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset);
  return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') };
}

// jsonc-parser's own getNodeValue would let a key called `__proto__` set the prototype.
function plain(node: Node, depth = 0): unknown {
  if (depth > DEEPEST) throw new RangeError();
  const children = node.children ?? [];
  if (node.type === 'array') return children.map((child) => plain(child, depth + 1));
  if (node.type !== 'object') return node.value;
  return Object.fromEntries(
    children.flatMap(({ children: [key, value] = [] }) => (key && value ? [[key.value, plain(value, depth + 1)]] : [])),
  );
}

/** The parser goes on after an error and trips over the rest of it: an error that touches the one before is left out. */
function withoutRepeats(errors: ParseError[]): ParseError[] {
  let end = -1;
  return [...errors]
    .sort((a, b) => a.offset - b.offset)
    .filter((error) => {
      const isRepeat = error.offset <= end && !printParseErrorCode(error.error).startsWith('Close');
      end = Math.max(end, error.offset + error.length);
      return !isRepeat;
    });
}

function syntaxSentence(code: ReturnType<typeof printParseErrorCode>): string {
  return SYNTAX[code] ?? 'this is not valid JSON';
}

const SYNTAX: Partial<Record<ReturnType<typeof printParseErrorCode>, string>> = {
  InvalidSymbol: 'this is not a JSON value; texts need double quotes',
  InvalidNumberFormat: 'this is not a JSON number',
  PropertyNameExpected: 'a key in double quotes is expected here',
  ValueExpected: 'a value is expected here',
  ColonExpected: 'a colon is missing here',
  CommaExpected: 'a comma is missing here',
  CloseBraceExpected: 'a closing brace } is missing here',
  CloseBracketExpected: 'a closing bracket ] is missing here',
  EndOfFileExpected: 'the configuration ended before this; remove the rest',
  UnexpectedEndOfComment: 'this comment is not closed',
  UnexpectedEndOfString: 'this text is not closed; add a double quote',
  UnexpectedEndOfNumber: 'this number is cut short',
  InvalidUnicode: 'this \\u escape needs four hexadecimal digits',
  InvalidEscapeCharacter: 'this escape is not known to JSON; write \\\\ for a backslash',
  InvalidCharacter: 'this control character must be escaped',
};

/** The machine is short of something, or its disk: the file may be read the next time. */
const NOT_NOW = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN', 'EIO']);

function unreadable(path: string, error: unknown): Complaint {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  const reasons: Record<string, string> = {
    ENOENT: 'the file does not exist; create it or name another one',
    EACCES: 'the file may not be read; check its permissions',
  };
  const why = error instanceof RangeError ? 'the file is nested too deeply' : sentence(error);
  const isPassing = NOT_NOW.has(String(code));
  return { path, line: 1, column: 1, message: reasons[String(code)] ?? why, ...(isPassing && { isPassing }) };
}

/** Every complaint and every warning about one document, in the order of the lines. */
export type Report = {
  complain(finding: Finding): void;
  warn(finding: Finding): void;
  /** The same report, for a part of the document: `keys` lead to it, and each sentence begins with `subject`. */
  about(keys: Keys, subject: string): Report;
  readonly complaints: Complaint[];
  readonly warnings: Complaint[];
};

export function openReport(document: Document): Report {
  const isBroken = document.complaints.length > 0;
  const complaints = [...document.complaints, ...repeatedKeys(document, document.tree)];
  const warnings: Complaint[] = [];
  const about = (prefix: Keys, subject: string): Report => {
    const note = (list: Complaint[], finding: Finding) => {
      // What seems to be missing from a broken file may only be unreadable.
      if (isBroken && finding.isMissing) return;
      const placed = { ...finding, keys: [...prefix, ...finding.keys], message: subject + finding.message };
      list.push(complaintOf(document, placed));
    };
    return {
      complain: (finding) => note(complaints, finding),
      warn: (finding) => note(warnings, finding),
      about: (keys, inner) => about([...prefix, ...keys], subject + inner),
      get complaints() {
        return complaints.toSorted(byPlace);
      },
      get warnings() {
        return warnings.toSorted(byPlace);
      },
    };
  };
  return about([], '');
}

const byPlace = (a: Complaint, b: Complaint): number => a.line - b.line || a.column - b.column;
