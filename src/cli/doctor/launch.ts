// Launches one server as the daemon would, says `initialize` to it, and takes it down again with all its children.

import type { StdioServer } from '../../config/schema.ts';
import { requestFrame } from '../../protocol/compose.ts';
import { LATEST } from '../../protocol/eras.ts';
import { type Frame, readFrame } from '../../protocol/frame.ts';
import { splitLines } from '../../protocol/lines.ts';
import { VERSION } from '../../protocol/version.ts';
import { childEnvironment, spawnChild } from '../../servers/stdio/child.ts';
import { findCommand } from '../../servers/stdio/command.ts';
import { printable } from '../../telemetry/printable.ts';
import { withoutTrace } from '../daemon/trouble.ts';
import type { Check } from './machine.ts';

const LONGEST_MS = 60_000;
const STDERR_LINES = 5;
const STDERR_CHARACTERS = 4000;

type Ending = { readonly frame: Frame } | { readonly why: string };

export async function launchCheck(server: StdioServer, env: NodeJS.ProcessEnv): Promise<Check> {
  const { name } = server;
  const startedAt = performance.now();
  const { ending, stderr } = await launch(server, env);
  const took = `${Math.round(performance.now() - startedAt)} ms`;
  if ('frame' in ending && ending.frame.kind === 'result') {
    const { serverInfo, protocolVersion } = JSON.parse(ending.frame.result.toString());
    const who = `${serverInfo?.name ?? 'unnamed'} ${serverInfo?.version ?? ''}`.trim();
    return { name, state: 'ok', detail: printable(`${who}, protocol ${protocolVersion}, launched in ${took}`) };
  }
  const last = withoutTrace(stderr.trim().split('\n')).slice(-STDERR_LINES).join('\n').trim();
  const detail = printable(last === '' ? whyOf(ending) : `${whyOf(ending)}; it said:\n${last}`);
  return {
    name,
    state: 'fail',
    detail,
    remedy: `run ${server.command} by hand with its arguments from the configuration`,
  };
}

async function launch(server: StdioServer, env: NodeJS.ProcessEnv): Promise<{ ending: Ending; stderr: string }> {
  const { command, args, cwd, settings } = server;
  const limitMs = Math.min(settings.openMs, LONGEST_MS);
  let stderr = '';
  let timer: NodeJS.Timeout | undefined;
  let exited = (): void => {};
  const gone = new Promise<void>((done) => {
    exited = done;
  });
  const ending = await new Promise<{ ending: Ending; close: () => void }>((done) => {
    const end = (how: Ending): void => done({ ending: how, close: () => child.close() });
    const lines = splitLines({
      maxBytes: settings.maxFrameBytes,
      onLine: (line) => {
        const frame = readFrame(line);
        if (frame.kind === 'result' || frame.kind === 'error') end({ frame });
      },
      onTooLong: () => end({ why: `wrote more than ${settings.maxFrameBytes} bytes without a newline` }),
    });
    const child = spawnChild({
      command,
      args,
      cwd,
      termMs: settings.termMs,
      stdinMs: settings.stdinMs,
      env: childEnvironment(env, settings.env, server.env, `doctor-${process.pid}`),
      onOutput: (chunk) => lines.push(chunk),
      onErrorOutput: (chunk) => {
        stderr = (stderr + chunk.toString()).slice(-STDERR_CHARACTERS);
      },
      onSpawn: () => {},
      onExit: (why) => {
        exited();
        end({ why });
      },
    });
    child.write(hello());
    timer = setTimeout(() => end({ why: `did not answer initialize within ${limitMs / 1000} s` }), limitMs);
  });
  clearTimeout(timer);
  ending.close();
  await gone;
  return { ending: ending.ending, stderr };
}

function hello(): Buffer {
  const params = { protocolVersion: LATEST, capabilities: {}, clientInfo: { name: 'troupe', version: VERSION } };
  return requestFrame(1, 'initialize', Buffer.from(JSON.stringify(params)));
}

function whyOf(ending: Ending): string {
  if ('why' in ending) return ending.why;
  return ending.frame.kind === 'error' ? `refused initialize: ${ending.frame.error.toString()}` : 'said no hello';
}

/** Whether the command can be found as the server's process would find it. */
export const onPath = ({ command, cwd, env }: StdioServer, own: NodeJS.ProcessEnv): boolean =>
  findCommand(command, cwd, env.PATH ?? own.PATH ?? '') !== undefined;
