// The smallest NATS client: a socket, PUB with a reply subject each, MSG and HMSG. Its own cost is 3-5 µs a call,
// where a full client's request() costs 25-55 µs and would hide what is measured.

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';

const CRLF = '\r\n';
const FAILED = /Nats-Service-Error|^NATS\/1\.0 \d/;

/** `onReply(sequence, { isError, size, head, body })`; the body only when it came in one piece, the headers always. */
export async function connectSocket(url, onReply) {
  const { host, port, token, user, pass } = addressOf(url);
  const socket = connect({ host, port, noDelay: true });
  await once(socket, 'connect');
  const inbox = `_INBOX.${randomBytes(9).toString('hex')}`;
  let outgoing = '';
  const flush = () => {
    if (outgoing) socket.write(outgoing, 'latin1');
    outgoing = '';
  };
  const connected = new Promise((resolve, reject) => {
    const onPing = () => socket.write(`PONG${CRLF}`);
    const read = reader({ onReply, onPing, onPong: resolve, onError: reject });
    socket.on('data', (chunk) => {
      read(chunk);
      flush();
    });
    socket.on('close', () => reject(new Error('the NATS connection closed')));
  });
  const options = { verbose: false, pedantic: false, headers: true, no_responders: true, name: 'bench' };
  const hello = JSON.stringify({ ...options, auth_token: token, user, pass, lang: 'raw', version: '1', protocol: 1 });
  socket.write(`CONNECT ${hello}${CRLF}SUB ${inbox}.* 1${CRLF}PING${CRLF}`);
  await connected;
  return {
    /** Queued until flush(), which follows each chunk read: what one turn publishes goes out in one write. */
    publish(subject, sequence, body) {
      outgoing += `PUB ${subject} ${inbox}.${sequence} ${body.length}${CRLF}${body}${CRLF}`;
    },
    /** With headers, as they stand on the wire. */
    publishWith(head, subject, sequence, body) {
      outgoing += `HPUB ${subject} ${inbox}.${sequence} ${head.length} ${head.length + body.length}${CRLF}`;
      outgoing += `${head}${body}${CRLF}`;
    },
    flush,
    close: () => socket.destroy(),
  };
}

export function addressOf(url) {
  const { hostname, port, username, password } = new URL(url);
  const [name, secret] = [decodeURIComponent(username), decodeURIComponent(password)];
  const credentials = secret ? { user: name, pass: secret } : name ? { token: name } : {};
  return { host: hostname, port: Number(port || 4222), ...credentials };
}

/** Bodies that do not arrive whole are counted, not kept: a megabyte must not be copied again with each chunk. */
function reader({ onReply, onPing, onPong, onError }) {
  let rest = Buffer.alloc(0);
  let current; // the message whose body is coming
  return (chunk) => {
    const data = rest.length ? Buffer.concat([rest, chunk]) : chunk;
    let at = 0;
    while (at < data.length) {
      if (current) {
        const taken = Math.min(current.left, data.length - at);
        current.left -= taken;
        at += taken;
        if (current.left > 0) break;
        onReply(current.sequence, current);
        current = undefined;
        continue;
      }
      const end = data.indexOf(10, at);
      if (end === -1) break;
      const line = data.latin1Slice(at, end - 1);
      if (line.startsWith('MSG') || line.startsWith('HMSG')) {
        const message = parse(line, data, end + 1);
        if (!message) break; // the headers are not all here yet
        current = message;
      } else if (line === 'PING') onPing();
      else if (line === 'PONG') onPong();
      else if (line.startsWith('-ERR')) onError(new Error(line));
      at = end + 1;
    }
    rest = data.subarray(at);
  };
}

function parse(line, data, start) {
  const words = line.split(' ');
  const size = Number(words.at(-1));
  const headerSize = words[0] === 'HMSG' ? Number(words.at(-2)) : 0;
  if (data.length < start + headerSize) return undefined;
  const head = headerSize > 0 ? data.latin1Slice(start, start + headerSize) : '';
  const isError = headerSize > 0 && FAILED.test(head);
  const isWhole = data.length >= start + size;
  const body = isWhole ? data.subarray(start + headerSize, start + size) : undefined;
  return { sequence: Number(words[1].slice(words[1].lastIndexOf('.') + 1)), size, isError, head, body, left: size + 2 };
}
