// The daemon that is fuzzed, with a healthy neighbour, a server to be called, and servers that are puppets of the fuzzer. While
// inputs come in, the neighbour is called without a pause: whoever it has to wait for was held up by an input.

import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { request } from 'undici';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { httpPuppet } from './puppets/http.ts';
import { stdioPuppet } from './puppets/stdio.ts';
import { websocketPuppet } from './puppets/websocket.ts';

export type House = Awaited<ReturnType<typeof house>>;

/** What was seen while inputs came in. */
export type Sight = {
  /** Calls of the neighbour that were answered, and the longest that one had to wait. */
  answered: number;
  slowestMs: number;
  /** What must not be: a call of the neighbour that was not answered, an end of the daemon, a cut of the bus, a fault of ours. */
  findings: string[];
};

const PROCESS = new URL('./puppets/process.mjs', import.meta.url).pathname;
/** A puppet is restarted for as long as the fuzzer likes: its crashes are what is tried. */
const PUPPET = {
  timeoutMs: 400,
  maxTimeoutMs: 1_000,
  maxFrameBytes: 1024 * 1024,
  openMs: 2_000,
  holdMs: 0,
  pingMs: 500,
  pingTimeoutMs: 1_000,
  stdinMs: 50,
  termMs: 50,
  restart: { intensity: 1_000_000_000, periodMs: 1_000, backoffMs: [0] },
};

export async function house() {
  const stdio = await stdioPuppet();
  const http = await httpPuppet();
  const websocket = await websocketPuppet();
  const d = await daemon({
    servers: {
      echo: fixture('echo'),
      victim: fixture('resources', { timeoutMs: 1_000, maxTimeoutMs: 2_000 }),
      puppet: {
        command: process.execPath,
        args: [PROCESS],
        env: { PUPPET_PORT: String(stdio.port) },
        'x-troupe': PUPPET,
      },
      asks: fixture('asks'),
      far: { url: http.url, 'x-troupe': PUPPET },
      wired: { url: websocket.url, 'x-troupe': PUPPET },
    },
    troupe: { asks: { timeoutMs: 10_000, hostMs: 200 }, http: { maxSessions: 500 }, logLevel: 'warn' },
  });
  return {
    d,
    puppets: { stdio, http, websocket },
    /** Does the work, and tells what became of the neighbour, the bus and the daemon meanwhile. */
    async watched(work: () => Promise<void>, stopsDaemon = false): Promise<Sight> {
      const sight: Sight = { answered: 0, slowestMs: 0, findings: [] };
      const alreadyLogged = logOf(d).length;
      const over = new AbortController();
      if (stopsDaemon) await work();
      const calls = [callOverNats(d), await callOverHttp(d)];
      const neighbours = calls.map((call) => keepCalling(sight, over.signal, call));
      try {
        if (!stopsDaemon) await work();
      } finally {
        over.abort();
        await Promise.all(neighbours);
      }
      await eventually(async () => (await d.status()).daemon.state === 'running', 10_000).catch((error) =>
        sight.findings.push(`the daemon does not answer any more: ${error}`),
      );
      sight.findings.push(...troublesIn(logOf(d).slice(alreadyLogged)));
      return sight;
    },
    /** The memory that only the daemon uses, in MB. */
    memory: (): number =>
      Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${d.pid}/status`, 'utf8'))?.[1] ?? 0) / 1024,
    async [Symbol.asyncDispose]() {
      await d[Symbol.asyncDispose]();
      await Promise.all([stdio, http, websocket].map((puppet) => puppet[Symbol.asyncDispose]()));
    },
  };
}

// ── The neighbour ────────────────────────────────────────────────────────────

const PACE_MS = 10;
const PATIENCE_MS = 20_000;
const MAX_FINDINGS = 20;

async function keepCalling(sight: Sight, over: AbortSignal, call: (message: string) => Promise<string>): Promise<void> {
  for (let count = 0; (count === 0 || !over.aborted) && sight.findings.length < MAX_FINDINGS; count++) {
    const message = `message ${count}`;
    const began = performance.now();
    try {
      const text = await call(message);
      if (!text.includes(message)) sight.findings.push(`the neighbour was answered ${text.slice(0, 200)}`);
      sight.answered += 1;
    } catch (error) {
      sight.findings.push(`the neighbour was not answered: ${error}`);
    }
    sight.slowestMs = Math.max(sight.slowestMs, performance.now() - began);
    await pause(PACE_MS);
  }
}

type Calling = (message: string) => Promise<string>;

const callOverNats =
  (d: Daemon): Calling =>
  async (message) =>
    (await d.request('troupe.call.echo.echo', { message }, { timeout: PATIENCE_MS })).text;

async function callOverHttp(d: Daemon): Promise<Calling> {
  const url = `${await d.http()}/mcp/echo`;
  const session = await openSession(url);
  return async (message) => {
    const params = { name: 'echo', arguments: { message } };
    return (await post(url, { id: 1, method: 'tools/call', params }, session)).body.text();
  };
}

/** The headers of a session that is open. */
export async function openSession(url: string): Promise<Record<string, string>> {
  const params = {
    protocolVersion: '2025-06-18',
    capabilities: { elicitation: {}, sampling: {}, roots: {} },
    clientInfo: { name: 'fuzz', version: '1' },
  };
  const { statusCode, headers, body } = await post(url, { id: 0, method: 'initialize', params });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`no session: ${statusCode} ${text}`);
  return { 'mcp-session-id': String(headers['mcp-session-id']), 'mcp-protocol-version': '2025-06-18' };
}

export const post = (url: string, message: object, headers: Record<string, string> = {}) =>
  request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    headersTimeout: PATIENCE_MS,
    bodyTimeout: PATIENCE_MS,
  });

// ── What the log tells ───────────────────────────────────────────────────────

const ERROR = 50;
const logOf = (d: Daemon): string => readFileSync(`${d.state}/logs/troupe.log`, 'utf8');

/** An error in the log is a fault of troupe's, unless it tells that a server has failed, or a server has said it (its `source`). */
export function troublesIn(log: string): string[] {
  const lines = log.split('\n').filter(Boolean);
  const troubles = lines.flatMap((line) => {
    const entry = JSON.parse(line) as { level: number | string; bus?: string; state?: string; source?: string };
    const isFault = Number(entry.level) >= ERROR && entry.state !== 'failed' && entry.source === undefined;
    const isCut = entry.bus !== undefined && entry.bus !== 'online';
    return isFault || isCut ? [line.slice(0, 500)] : [];
  });
  return troubles.slice(0, MAX_FINDINGS);
}
