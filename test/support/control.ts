// One question over a daemon's control socket, as the command line asks it, without the price of starting a process.

import { connect } from 'node:net';
import { createInterface } from 'node:readline';

export function askControl<Answer>(path: string, method: string, params: object = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    const lines = createInterface(socket);
    lines.on('error', reject); // the socket's own errors come here too
    socket.on('error', reject).on('close', () => reject(new Error(`the daemon closed ${path}`)));
    lines.once('line', (line) => {
      const { result, error } = JSON.parse(line);
      if (error) reject(new Error(error.message));
      else resolve(result);
      socket.destroy();
    });
    socket.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })}\n`);
  });
}
