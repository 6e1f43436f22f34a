// A host's session over HTTP or WebSocket, as thin as can be: opened, calls in parallel, ended politely or not.
// `call(id, tool, args, done)`: done once with `{ ok, isLost, failure }`; a second answer to the same id is a stray.
// With DOOR_CLIENT=undici what goes over HTTP goes through that client.

import { Pool } from 'undici';
import { messagesIn, openSocket, requestBytes } from './http-socket.mjs';
import { openWebSocket } from './ws-socket.mjs';

const VERSION = '2025-11-25';
const INITIALIZE = JSON.stringify({
  protocolVersion: VERSION,
  capabilities: {},
  clientInfo: { name: 'bench', version: '1' },
});
const INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}';
const requestOf = (id, method, params) => `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`;
const callOf = (id, tool, args) => requestOf(id, 'tools/call', `{"name":"${tool}","arguments":${args}}`);

export const openSession = (url, onStray) =>
  url.protocol === 'ws:' ? openOverWebSocket(url, onStray) : openOverHttp(url, onStray);

async function openOverHttp(url, onStray) {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': VERSION,
  };
  const { post, listen, close } = process.env.DOOR_CLIENT === 'undici' ? pooled(url, headers) : raw(url, headers);
  const ask = (body, method) => new Promise((resolve) => post(body, resolve, method));

  const opened = await ask(requestOf(0, 'initialize', INITIALIZE));
  if (opened?.status !== 200) throw new Error(`initialize was answered ${opened?.status}: ${opened?.messages[0]}`);
  if (opened.session) headers['mcp-session-id'] = opened.session;
  await ask(INITIALIZED);
  return {
    call(id, tool, args, done) {
      post(callOf(id, tool, args), (answer) => {
        const own = (answer?.messages ?? []).map((text) => JSON.parse(text)).filter((message) => message.id === id);
        for (let extra = 1; extra < own.length; extra += 1) onStray(own[extra]);
        done(own[0] ? outcomeOf(own[0]) : { ok: false, isLost: true, failure: `HTTP ${answer?.status}` });
      });
    },
    listen,
    async end(isPolite) {
      if (isPolite) await ask('', 'DELETE');
      close();
    },
  };
}

/** Sockets of our own, one for each call outstanding. */
function raw(url, headers) {
  const idle = [];
  const all = new Set();
  const connection = () => {
    for (let socket = idle.pop(); socket; socket = idle.pop()) if (socket.isOpen) return socket;
    const socket = openSocket(url);
    all.add(socket);
    return socket;
  };
  return {
    /** The connection is free again before the caller hears, since it will want one at once. */
    post(body, done, method = 'POST') {
      const socket = connection();
      socket.request(requestBytes(url, { method, headers, body }), (answer) => {
        if (answer) idle.push(socket);
        else all.delete(socket);
        done(answer);
      });
    },
    /** A stream for what belongs to no request; it stays open until the session ends. */
    listen() {
      const socket = openSocket(url);
      all.add(socket);
      socket.request(
        requestBytes(url, { method: 'GET', headers: { ...headers, accept: 'text/event-stream' } }),
        () => {},
      );
    },
    close() {
      for (const socket of all) socket.close();
    },
  };
}

/** The client that most programs on Node have, with as many connections as it wants. */
function pooled(url, headers) {
  const pool = new Pool(url.origin);
  const post = (body, done, method = 'POST') =>
    pool.request({ path: url.pathname, method, headers, body }).then(
      async ({ statusCode: status, headers: head, body: answer }) => {
        const text = await answer.text();
        const isStream = /event-stream/.test(head['content-type'] ?? '');
        done({ status, session: head['mcp-session-id'], messages: messagesIn({ isStream }, text) });
      },
      () => done(undefined),
    );
  return { post, listen() {}, close: () => void pool.destroy() };
}

async function openOverWebSocket(url, onStray) {
  const waiting = new Map();
  const onMessage = (text) => {
    const message = JSON.parse(text);
    if (message.id === undefined) return;
    const done = waiting.get(message.id);
    waiting.delete(message.id);
    if (done) done(outcomeOf(message));
    else onStray(message);
  };
  const onClose = () => {
    for (const done of waiting.values()) done({ ok: false, isLost: true, failure: 'the connection closed' });
    waiting.clear();
  };
  const socket = await openWebSocket(url, { onMessage, onClose });
  await new Promise((resolve) => {
    waiting.set(0, resolve);
    socket.send(requestOf(0, 'initialize', INITIALIZE));
  });
  socket.send(INITIALIZED);
  return {
    call(id, tool, args, done) {
      waiting.set(id, done);
      socket.send(callOf(id, tool, args));
    },
    listen() {},
    async end() {
      socket.close();
    },
  };
}

/** `isLost`: nobody answered for the call itself. */
function outcomeOf(message) {
  if (message.error) return { ok: false, isLost: false, failure: message.error.message };
  if (message.result?.isError) return { ok: false, isLost: false, failure: JSON.stringify(message.result) };
  return { ok: true };
}
