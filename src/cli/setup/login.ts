// `login` and `logout`: proves to a remote server who you are. The URL is always printed, so that it can be opened
// elsewhere; the browser's answer goes to the daemon, and this waits until the daemon has it.

import { type Control, withControl } from '../control.ts';
import { NO_BROWSER, openBrowser } from '../terminal/programs.ts';
import { type Cli, OK } from '../verb.ts';

/** commander's `--no-browser`. */
export type LoginOptions = { readonly browser?: boolean };

export function login({ output, paths }: Cli, server: string, options: LoginOptions): Promise<number> {
  return withControl(paths.socket, async (control) => {
    const started = await control.ask('login', { server });
    if ('outcome' in started) {
      if (output.json) output.print(JSON.stringify(started));
      else output.print(started.why);
      return OK;
    }
    const { url, id } = started;
    if (output.json) output.print(JSON.stringify({ server, url }));
    else output.print(`To log in to ${server}, open\n\n  ${url}\n`);
    if (options.browser !== false && output.isWatched)
      void openBrowser(url).then((isOpen) => isOpen || output.say(NO_BROWSER));
    await untilDone(control, server, id);
    if (output.json) output.print(JSON.stringify({ server, outcome: 'done' }));
    else output.print(`You are logged in to ${server}.`);
    return OK;
  });
}

export async function logout({ output, paths }: Cli, server: string): Promise<number> {
  const ask = (control: Control) => control.ask('logout', { server });
  const { wasLoggedIn } = await withControl(paths.socket, ask);
  if (output.json) output.print(JSON.stringify({ server, wasLoggedIn }));
  else output.print(wasLoggedIn ? `You are logged out of ${server}.` : `You were not logged in to ${server}.`);
  return OK;
}

/** Denied, timed out, wrong state: each comes as an error with its sentence. */
async function untilDone(control: Control, server: string, id: string): Promise<void> {
  for (;;) {
    const { outcome } = await control.ask('loginWait', { server, id });
    if (outcome === 'done') return;
  }
}
