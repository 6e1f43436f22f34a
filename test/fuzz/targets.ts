// Everything that takes something from strangers, and is fuzzed.

import type { Target } from './target.ts';
import { bus } from './targets/bus.ts';
import { config } from './targets/config.ts';
import { control, pipe, websocket } from './targets/connections.ts';
import { frames } from './targets/frames.ts';
import { http } from './targets/http.ts';
import { rows } from './targets/rows.ts';
import { httpServer, stdioServer, websocketServer } from './targets/servers.ts';

export const TARGETS: readonly Target<any>[] = [
  frames,
  config,
  http,
  websocket,
  pipe,
  control,
  bus,
  stdioServer,
  websocketServer,
  httpServer,
  rows,
];
