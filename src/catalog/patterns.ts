// Which tools or prompts a rule means: patterns of names with `*` for any run of characters.

export type Rules = { readonly allow?: string[] | undefined; readonly deny?: string[] | undefined };

/** By the rules of a configuration, which are the same object until they change: every call asks. */
const known = new WeakMap<Rules, (name: string) => boolean>();

/** Whether a name is among those that are allowed and none of those that are denied. */
export function permission(rules: Rules): (name: string) => boolean {
  const made = known.get(rules) ?? compiled(rules);
  known.set(rules, made);
  return made;
}

function compiled({ allow, deny }: Rules): (name: string) => boolean {
  const denied = deny?.map(glob) ?? [];
  const allowed = allow?.map(glob);
  return (name) => !denied.some((matches) => matches(name)) && (!allowed || allowed.some((matches) => matches(name)));
}

/** Compared piece by piece: a pattern of a configuration must not become a slow regular expression. */
export function glob(pattern: string): (name: string) => boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return (name) => name === pattern;
  return (name) => {
    if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) return false;
    let at = first.length;
    for (const piece of rest) {
      const found = name.indexOf(piece, at);
      if (found < 0 || found + piece.length > name.length - last.length) return false;
      at = found + piece.length;
    }
    return true;
  };
}
