// The smallest HTTP client: one keep-alive socket, one request at a time, whole answers. A full client would cost more
// than what is measured. Answers come as JSON or as a stream of events; both are read to their end.

import { connect } from 'node:net';

const HEAD_END = Buffer.from('\r\n\r\n');
const LINE_END = Buffer.from('\r\n');

/** `request(bytes, done)`; done gets `{ status, session, messages }`, or undefined when the connection broke. */
export function openSocket({ hostname, port }) {
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  let done;
  let isOpen = true;
  const settle = (answer) => {
    const call = done;
    done = undefined;
    call?.(answer);
  };
  const read = reader(settle);
  socket.on('data', read);
  socket.on('error', () => {}); // `close` follows
  socket.on('close', () => {
    isOpen = false;
    settle(undefined);
  });
  return {
    get isOpen() {
      return isOpen;
    },
    request(bytes, then) {
      done = then;
      socket.write(bytes);
    },
    close: () => socket.destroy(),
  };
}

export function requestBytes(url, { method = 'POST', headers = {}, body = '' }) {
  const lines = Object.entries({ host: url.host, ...headers, 'content-length': Buffer.byteLength(body) });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return Buffer.from(`${method} ${url.pathname} HTTP/1.1\r\n${head}\r\n${body}`);
}

function reader(onAnswer) {
  let rest = Buffer.alloc(0);
  let head;
  let pieces = [];
  return (chunk) => {
    rest = rest.length ? Buffer.concat([rest, chunk]) : chunk;
    for (;;) {
      if (!head) {
        const end = rest.indexOf(HEAD_END);
        if (end === -1) return;
        head = headOf(rest.latin1Slice(0, end));
        rest = rest.subarray(end + HEAD_END.length);
      }
      const body = head.isChunked ? chunked() : counted();
      if (body === undefined) return;
      const answer = { status: head.status, session: head.session, messages: messagesIn(head, body) };
      head = undefined;
      pieces = [];
      onAnswer(answer);
    }
  };

  function counted() {
    if (rest.length < head.length) return undefined;
    const body = rest.toString('utf8', 0, head.length);
    rest = rest.subarray(head.length);
    return body;
  }

  function chunked() {
    for (;;) {
      const end = rest.indexOf(LINE_END);
      if (end === -1) return undefined;
      const size = Number.parseInt(rest.latin1Slice(0, end), 16);
      const to = end + 2 + size;
      if (rest.length < to + 2) return undefined;
      if (size > 0) pieces.push(rest.subarray(end + 2, to));
      rest = rest.subarray(to + 2);
      if (size === 0) return Buffer.concat(pieces).toString();
    }
  }
}

function headOf(text) {
  const header = (name) => new RegExp(`^${name}: *(.*)$`, 'im').exec(text)?.[1].trim();
  return {
    status: Number(text.slice(9, 12)),
    length: Number(header('content-length') ?? 0),
    isChunked: /chunked/i.test(header('transfer-encoding') ?? ''),
    isStream: /event-stream/.test(header('content-type') ?? ''),
    session: header('mcp-session-id'),
  };
}

/** The messages of a body, which is one or a stream of events. */
export function messagesIn({ isStream }, body) {
  if (!isStream) return body === '' ? [] : [body];
  return body
    .split('\n')
    .filter((line) => line.startsWith('data:') && line.length > 6)
    .map((line) => line.slice(5));
}
