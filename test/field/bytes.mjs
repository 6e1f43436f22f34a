// JSON taken apart without being read: the text of each member as it was written. troupe's own scanner is what is examined
// here, so this is another one, small and slow.

const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/sy;

/** The members of an object, or the items of an array by their index, each as its text. */
export function membersOf(text) {
  const parts = Object.create(null); // a member may be called `__proto__`
  const isArray = text.trimStart()[0] === '[';
  let at = text.search(/[[{]/) + 1;
  for (let index = 0; ; index += 1) {
    at = skip(text, at, /[\s,]*/y);
    if (at >= text.length || text[at] === '}' || text[at] === ']') return parts;
    let key = index;
    if (!isArray) {
      const end = endOf(text, at);
      key = JSON.parse(text.slice(at, end));
      at = skip(text, end, /[\s:]*/y);
    }
    const end = endOf(text, at);
    parts[key] = text.slice(at, end);
    at = end;
  }
}

/** Where the value that begins there ends. */
function endOf(text, from) {
  if (text[from] === '"') return skip(text, from, STRING);
  if (text[from] !== '{' && text[from] !== '[') return skip(text, from, /[^\s,\]}]*/y);
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === '"') at = skip(text, at, STRING) - 1;
    else if (text[at] === '{' || text[at] === '[') depth += 1;
    else if (text[at] === '}' || text[at] === ']') {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return text.length;
}

function skip(text, from, pattern) {
  pattern.lastIndex = from;
  return pattern.test(text) ? pattern.lastIndex : from;
}
