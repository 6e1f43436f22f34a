// What a person in front of the terminal is told: what runs, how to call it, where to look; then only what changes.

import type { Member } from '../servers/member.ts';

export type Announcer = {
  /** Something that makes the first start slow, such as a download. */
  waiting(what: string): void;
  started(facts: Started): void;
  changed(member: Member): void;
};
export type Started = {
  readonly version: string;
  readonly bus: {
    readonly state: string;
    readonly url: string;
    readonly managed: boolean;
    readonly lastError?: string;
  };
  /** Where hosts come in; none when the HTTP door is off. */
  readonly http?: {
    readonly url: string | null;
    readonly insteadOf?: number;
    readonly isOpen?: boolean;
    readonly needsToken?: boolean;
    readonly error?: string;
  };
  readonly members: readonly Member[];
  readonly tools: (member: Member) => number;
  readonly config: string | undefined;
  readonly logFile: string;
};

export function announcer(say: (line: string) => void): Announcer {
  let isStarted = false;
  return {
    waiting: say,
    started(facts) {
      for (const line of banner(facts)) say(line);
      isStarted = true;
    },
    changed({ name, state, why }) {
      // Only a terminal is told; in the background the log has every change.
      if (!isStarted || !process.stdout.isTTY || state === 'opening' || state === 'closing') return;
      say(`${new Date().toTimeString().slice(0, 8)}  ${name} is ${state}${why ? `: ${why}` : ''}`);
    },
  };
}

function banner({ version, bus, http, members, tools, config, logFile }: Started): string[] {
  const first = members.find((member) => member.state === 'ready') ?? members[0];
  const isDemo = first?.name === 'everything';
  const server = first?.name ?? '<server>';
  const call = isDemo ? 'everything echo message=hi' : `${server} <tool> key=value`;
  const subject = isDemo ? 'troupe.call.everything.echo \'{"message":"hi"}\'' : `troupe.call.${server}.<tool> '{}'`;
  return [
    `troupe ${version} is running, pid ${process.pid}`,
    `  bus      ${bus.state === 'online' ? `${bus.url}${bus.managed ? ' (run by troupe)' : ''}` : `offline: ${bus.lastError ?? 'not connected yet'}`}`,
    ...(http ? [`  http     ${http.url === null ? (http.error ?? 'off') : `${http.url}/mcp`}`] : []),
    ...(http?.insteadOf
      ? [`           not on ${http.insteadOf}, which is taken, or was when this port was chosen`]
      : []),
    ...(http?.isOpen ? ['           open to other machines, who need the token of npx troupe env'] : []),
    ...(http?.needsToken && !http.isOpen ? ['           everybody needs the token of npx troupe env'] : []),
    ...members.map((member, index) => `  ${index === 0 ? 'servers' : '       '}  ${line(member, tools(member))}`),
    `  config   ${config ?? 'built in; troupe add, troupe import or a file of your own replaces it'}`,
    `  log      ${logFile}`,
    `  call     npx troupe call ${call}`,
    '           eval "$(npx troupe env)"',
    `           nats req ${subject}`,
    '  hosts    npx troupe install claude-code|claude-desktop|cursor|vscode|codex',
    '  look     npx troupe status, npx troupe tools, npx troupe logs -f',
    'Ctrl-C stops all of it.',
  ];
}

const line = ({ name, state, why }: Member, tools: number): string =>
  `${name.padEnd(12)} ${state.padEnd(8)} ${state === 'ready' ? `${tools} tools` : why}`;
