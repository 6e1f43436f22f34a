// Whose a connection from this machine is. Linux tells: the client's end of it is a row in the kernel's tables of connections,
// with the uid and the inode of the socket that made it. Where the system does not tell, everybody needs a token.

import { accessSync, constants, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { isIPv4, type Socket } from 'node:net';
import { endianness } from 'node:os';

/** `server`: a process of the owner's that is one of our servers, or was started by one. */
export type Standing = 'owner' | 'server' | 'another' | 'unknown';
/** A promise only for the first request of a connection. */
export type StandingOf = (socket: Socket) => Standing | Promise<Standing>;

export type PeersOptions = {
  /** The uid whose connections need no token. */
  readonly owner: number;
  /** The sockets of processes that are not trusted for their uid, by inode. */
  readonly serversSockets: () => Promise<Pick<ReadonlySet<string>, 'has'>>;
};

const TABLE_4 = '/proc/self/net/tcp';
const TABLE_6 = '/proc/self/net/tcp6';

/** Nothing where the system does not tell. */
export function peersOf({ owner, serversSockets }: PeersOptions): StandingOf | undefined {
  if (!isTold() || isAnybody(owner)) return undefined;
  const standings = new WeakMap<Socket, Standing | Promise<Standing>>();
  const four = shared(() => readFile(TABLE_4, 'latin1'));
  const six = shared(() => readFile(TABLE_6, 'latin1').catch(() => '')); // a system without IPv6 has none
  const untrusted = shared(serversSockets);

  async function find(socket: Socket): Promise<Row | undefined> {
    const [client, here] = [
      endOf(socket.remoteAddress, socket.remotePort),
      endOf(socket.localAddress, socket.localPort),
    ];
    if (!client || !here) return undefined; // it has gone already
    const found = client.four && here.four && rowIn(await four(), client.four, here.four);
    // A client may have made an IPv6 socket and gone to an IPv4 address with it.
    return found || rowIn(await six(), client.six, here.six);
  }

  async function look(socket: Socket): Promise<Standing> {
    // Looked for twice: a table that changes while it is read may pass over a row.
    const row = (await find(socket)) ?? (await find(socket));
    if (!row) return 'unknown';
    if (row.uid !== owner) return 'another';
    return (await untrusted()).has(row.inode) ? 'server' : 'owner';
  }

  return (socket) => {
    const known = standings.get(socket);
    if (known !== undefined) return known;
    const looking = look(socket)
      .catch((): Standing => 'unknown')
      .then((standing) => {
        // Of one that was not found the next request may know more.
        if (standing === 'unknown') standings.delete(socket);
        else standings.set(socket, standing);
        return standing;
      });
    standings.set(socket, looking);
    return looking;
  };
}

function isTold(): boolean {
  try {
    accessSync(TABLE_4, constants.R_OK);
    return process.platform === 'linux';
  } catch {
    return false;
  }
}

/** In a user namespace, a container's, all users that it does not know have one uid in the tables: nobody's. */
function isAnybody(uid: number): boolean {
  const isWhole = /^\s*0\s+0\s+4294967295\s*$/.test(textOf('/proc/self/uid_map'));
  return !isWhole && uid === (Number(textOf('/proc/sys/kernel/overflowuid')) || USUAL_NOBODY);
}

const USUAL_NOBODY = 65_534;

function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return ''; // this system does not show it
  }
}

/** One reading at a time, each for all who asked before it began: a thousand new connections cost two. */
function shared<Found>(read: () => Promise<Found>): () => Promise<Found> {
  let latest: Promise<unknown> = Promise.resolve();
  let next: Promise<Found> | undefined;
  return () => {
    if (next) return next;
    const reading = latest.then(() => {
      next = undefined;
      return read();
    });
    latest = reading.catch(() => {}); // those who asked get the error
    next = reading;
    return reading;
  };
}

// ── The tables ───────────────────────────────────────────────────────────────

type Row = { readonly uid: number; readonly inode: string };

/** The row of the client's end. A socket that its process has closed has no inode, and its uid means nothing any more. */
function rowIn(table: string, client: string, here: string): Row | undefined {
  const at = table.indexOf(` ${client} ${here} `);
  if (at < 0) return undefined;
  const [, , , , , , , uid, , inode] = table.slice(at, table.indexOf('\n', at)).split(/ +/);
  return uid === undefined || inode === undefined || inode === '0' ? undefined : { uid: Number(uid), inode };
}

/** One end of a connection as the tables write it. */
type End = { readonly four: string | undefined; readonly six: string };

function endOf(address: string | undefined, port: number | undefined): End | undefined {
  if (address === undefined || port === undefined) return undefined;
  const plain = address.replace(/^::ffff:(?=\d+\.)/, '').replace(/%.*$/, '');
  const digits = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  if (!isIPv4(plain)) return { four: undefined, six: hexOf(bytesOf(plain)) + digits };
  const bytes = plain.split('.').map(Number);
  return { four: hexOf(bytes) + digits, six: hexOf([...Array<number>(10).fill(0), 255, 255, ...bytes]) + digits };
}

function bytesOf(address: string): number[] {
  const [left = [], right = []] = address.split('::').map((part) => part.split(':').filter(Boolean));
  const groups = [...left, ...Array<string>(8 - left.length - right.length).fill('0'), ...right];
  return groups.flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255]);
}

/** Four bytes at a time, as a number of this machine. */
function hexOf(bytes: readonly number[]): string {
  const words = Array.from({ length: bytes.length / 4 }, (_, index) => bytes.slice(4 * index, 4 * index + 4));
  const turned = words.flatMap((word) => (endianness() === 'LE' ? word.toReversed() : word));
  return Buffer.from(turned).toString('hex').toUpperCase();
}
