// Variables in the texts of a definition: ${VAR}, ${VAR:-default}, and ${env:VAR} as VS Code and Cursor write it.
// $VAR is left to the shell, and so is every other form; a value is never expanded a second time.

export type Expansion = {
  readonly text: string;
  /** What is wrong, each the end of a sentence that begins with the key. Values are never part of it. */
  readonly problems: string[];
};

const VARIABLE = /\$\{(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?\}/g;
const QUESTION = /\$\{input:([^}]*)\}/g;

export function expand(text: string, env: NodeJS.ProcessEnv): Expansion {
  const problems: string[] = [];
  for (const [question] of text.matchAll(QUESTION)) {
    problems.push(`uses ${question}, which only VS Code can ask for; use a variable such as \${TOKEN} instead`);
  }
  const expanded = text.replace(VARIABLE, (written: string, name: string, fallback: string | undefined) => {
    if (fallback?.includes('${')) {
      problems.push(`gives \${${name}} a default that holds another variable, which cannot be expanded`);
      return written;
    }
    const value = variableOf(env, name);
    // As in a shell, an empty variable takes the default too.
    if (fallback !== undefined) return value || fallback;
    if (value === undefined) problems.push(unset(name));
    return value ?? written;
  });
  return { text: expanded, problems };
}

const unset = (name: string): string =>
  `uses \${${name}}, which is not set; set it in the daemon's environment or write \${${name}:-default}`;

// `constructor` and its like are inherited even by process.env.
function variableOf(env: NodeJS.ProcessEnv, name: string): string | undefined {
  return Object.hasOwn(env, name) ? env[name] : undefined;
}
