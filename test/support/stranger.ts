// Clients of another user of this machine: bytes that a process with another uid sends to a door, and what it hears.
// Only root can start one; for everybody else the door is told that its owner is somebody else, which comes to the same.

import { execa } from 'execa';

export type Letter = {
  readonly host?: string;
  readonly port: number;
  readonly bytes: string;
  /** Closes its connection as soon as the bytes are sent. */
  readonly leaves?: boolean;
};

const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;

/** The uid of the door's owner, for whom those clients are strangers. */
export const OWNER_UID = isRoot ? 0 : (process.getuid?.() ?? 0) + 1;

export const SCRIPT = `
const { connect } = require('node:net');
const send = ({ host = '127.0.0.1', port, bytes, leaves }) => new Promise((resolve) => {
  let said = '';
  const socket = connect(port, host, () => socket.write(bytes, () => leaves && socket.destroy()));
  socket.on('data', (chunk) => { said += chunk; });
  socket.on('error', (error) => { said += error.code; });
  socket.on('close', () => resolve(said));
  socket.setTimeout(3000, () => socket.destroy());
});
Promise.all(JSON.parse(process.argv[1]).map(send)).then((all) => process.stdout.write(JSON.stringify(all)));
`;

/** How a process of that user is started. */
export const AS_STRANGER = { cwd: '/', ...(isRoot && { uid: NOBODY, gid: NOBODY }) };

/** What came back for each, until the other side closed. */
export async function asStranger(...letters: readonly Letter[]): Promise<string[]> {
  const { stdout } = await execa(process.execPath, ['-e', SCRIPT, JSON.stringify(letters)], AS_STRANGER);
  return JSON.parse(stdout);
}
