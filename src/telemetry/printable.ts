// Text of others, made fit to be seen: escape sequences in it could retitle, overwrite or type into a terminal, and characters
// that are not seen, or that turn the direction of writing, could make it read as something else.

/**
 * What drives a terminal, turns the direction of writing or is not seen at all. A newline and a tab are meant to be there, and so
 * is the mark behind a symbol that makes a picture of it.
 */
const HIDDEN =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}](?<![\n\t]|\p{Extended_Pictographic}\ufe0f)/gu;

/** What no writing needs, except for a newline and a tab. */
const UNWRITTEN = /(?![\n\t])[\p{Cc}\u2028-\u202e\u2066-\u2069\u{e0000}-\u{e0fff}]/gu;

/** For a terminal: what would be hidden is written as JSON escapes it, such as `\u202e`. JSON stays the same JSON. */
export function printable(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(HIDDEN, escaped);
}

function escaped(character: string): string {
  let units = '';
  for (let at = 0; at < character.length; at++) units += `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`;
  return units;
}

/** For text that is kept, or shown to a host. The marks that join and part letters stay: some scripts need them. */
export function withoutControls(text: string): string {
  return text.replace(UNWRITTEN, '\ufffd');
}
