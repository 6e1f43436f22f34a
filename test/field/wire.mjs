// MCP spoken by hand, over a child's pipes and over Streamable HTTP, with no SDK between: what is compared are the bytes that
// came. A connection has `ask`, which resolves to the answer as it stands on the wire and puts what it is told meanwhile, line by
// line, into the list that it is given, and `close`.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { membersOf } from './bytes.mjs';

const ASK_MS = 60_000;
/** Word for word what troupe says to a server, but for the mark of its own: servers offer more to those who can more. */
const GREETING = {
  protocolVersion: '2025-11-25',
  capabilities: {
    elicitation: { form: {}, url: {} },
    sampling: { tools: {} },
    roots: { listChanged: true },
    tasks: { list: {}, cancel: {}, requests: { sampling: { createMessage: {} }, elicitation: { create: {} } } },
  },
  clientInfo: { name: 'troupe', version: '0.0.0' },
};

/** A server that is a process; `hello` is its answer to `initialize`. */
export async function overPipes({ command, args, env, cwd }) {
  const child = spawn(command, args, { env, cwd, stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  const gone = once(child, 'exit').catch((error) => [error.message]);
  const waiting = new Map();
  let words = '';
  const send = (message) => child.stdin.write(`${JSON.stringify(message)}\n`);
  child.stdin.on('error', () => {}); // it has died, which every open question is told
  child.stderr.on('data', (chunk) => {
    words = `${words}${chunk}`.slice(-500);
  });
  createInterface({ input: child.stdout }).on('line', (line) => {
    const message = read(line);
    if (isQuestion(message)) {
      if (isOfCall(message)) for (const { told } of waiting.values()) told?.push(line);
      send(replyTo(message));
    } else if (message?.id !== undefined) waiting.get(message.id)?.resolve(line);
    else waiting.get(message?.params?.progressToken)?.told?.push(line);
  });
  let last = 0;
  const ask = (method, params, told) => {
    last += 1;
    const id = last;
    const answered = new Promise((resolve) => waiting.set(id, { resolve, told })).finally(() => waiting.delete(id));
    send({ jsonrpc: '2.0', id, method, params: withToken(params, id, told) });
    const died = gone.then(([code]) => Promise.reject(new Error(`it ended (${code}): ${words.trim()}`)));
    return within(Promise.race([answered, died]), method);
  };
  const close = async () => {
    try {
      process.kill(-child.pid, 'SIGKILL'); // with all that it has started
    } catch {} // it is gone already
    await gone;
  };
  return opened({ ask, notify: (method) => send({ jsonrpc: '2.0', method }), close });
}

/** A server behind an address, or troupe's door. */
export async function overHttp(url) {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  let last = 0;
  const post = async (message) => {
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(message) });
    const session = answer.headers.get('mcp-session-id');
    if (session) headers['mcp-session-id'] = session;
    return answer;
  };
  const ask = async (method, params, told) => {
    last += 1;
    const id = last;
    const answer = await within(post({ jsonrpc: '2.0', id, method, params: withToken(params, id, told) }), method);
    const take = async (line) => {
      const message = read(line);
      if (isQuestion(message)) {
        if (isOfCall(message)) told?.push(line);
        await post(replyTo(message)).then((taken) => taken.text());
      } else if (message?.id === id) return line;
      else if (message?.params?.progressToken === id) told?.push(line);
      return undefined;
    };
    const line = await within(answerIn(answer, take), method);
    if (line === undefined) throw new Error(`${method} was answered with ${answer.status} and no message`);
    if (method === 'initialize') headers['mcp-protocol-version'] = JSON.parse(line).result?.protocolVersion;
    return line;
  };
  const close = async () => {
    if (headers['mcp-session-id']) await fetch(url, { method: 'DELETE', headers }).catch(() => {}); // it may be gone
  };
  const notify = (method) => post({ jsonrpc: '2.0', method }).then((answer) => answer.text());
  return opened({ ask, notify, close });
}

/** Whoever has a list for it wants to be told of progress. */
const withToken = (params, progressToken, told) => (told ? { ...params, _meta: { progressToken } } : params);

async function opened(connection) {
  try {
    const hello = await connection.ask('initialize', GREETING);
    await connection.notify('notifications/initialized');
    return { ...connection, hello };
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** All pages of a list: its items as they stand there, and what else the results say. */
export async function listed(connection, method, key) {
  const [items, others] = [[], []];
  for (let cursor; ; ) {
    const { result, error } = membersOf(await connection.ask(method, cursor ? { cursor } : {}));
    if (error !== undefined) return { error };
    const { [key]: array = '[]', nextCursor, ...more } = membersOf(result);
    items.push(...Object.values(membersOf(array)));
    others.push(...Object.entries(more).map(([name, value]) => `${name}: ${value}`));
    if (nextCursor === undefined) return { items, others };
    cursor = JSON.parse(nextCursor);
  }
}

/** Hands on the messages of an answer, which is one or a stream of them, until one is what was waited for. */
async function answerIn(answer, take) {
  if (!answer.headers.get('content-type')?.startsWith('text/event-stream')) return take(await answer.text());
  let rest = '';
  for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
    const lines = `${rest}${chunk}`.split(/\r?\n/);
    rest = lines.pop();
    for (const line of lines) {
      const found = line.startsWith('data:') ? await take(line.slice(5).trim()) : undefined;
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

const isQuestion = (message) => message?.method !== undefined && message.id !== undefined;
/** The others are asked whenever a server likes. */
const isOfCall = ({ method }) => method !== 'roots/list' && method !== 'ping';

/** The same to everybody who asks. */
const REPLIES = {
  ping: {},
  'roots/list': { roots: [] },
  'elicitation/create': { action: 'decline' },
  'sampling/createMessage': { role: 'assistant', content: { type: 'text', text: 'a thought ✓' }, model: 'nobody' },
};

const replyTo = ({ id, method }) => ({
  ...{ jsonrpc: '2.0', id },
  ...(REPLIES[method] ? { result: REPLIES[method] } : { error: { code: -32601, message: 'nobody is there' } }),
});

function read(line) {
  try {
    return JSON.parse(line);
  } catch {
    return undefined; // servers print other things, too
  }
}

async function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} was not answered within ${ASK_MS / 1000} s`)), ASK_MS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
