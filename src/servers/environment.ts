// What a server's process gets to see of our environment: little. Its secrets are the ones its configuration names,
// never the ones that happened to be in the daemon's shell.

/** What a program needs to run at all, and nothing that is a secret. */
const MINIMAL = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TMPDIR', 'TZ'];

/** Marks every descendant of this daemon, so that the next one finds those that left their process group. */
export const MARKER = 'TROUPE_DAEMON';

export function childEnvironment(
  own: NodeJS.ProcessEnv,
  policy: 'minimal' | 'inherit' | readonly string[],
  given: Readonly<Record<string, string>>,
  marker: string,
): Record<string, string> {
  const names = policy === 'inherit' ? Object.keys(own) : policy === 'minimal' ? MINIMAL : [...MINIMAL, ...policy];
  const passed = names.flatMap((name) => (own[name] === undefined ? [] : [[name, own[name]] as const]));
  return { ...Object.fromEntries(passed), ...given, [MARKER]: marker };
}
