// Text of others, made fit for a terminal: escape sequences in it could retitle, overwrite or type into the terminal.

export function withoutControls(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it is about
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '\ufffd');
}
