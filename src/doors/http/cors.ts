// What a browser is told before it lets a page of a configured origin send what MCP needs.

import { ALLOWED, type Place } from './routes.ts';
import { sendEmpty, type Visit } from './visit.ts';

const HEADERS = [
  ...['Authorization', 'Content-Type', 'Accept', 'Last-Event-ID'],
  ...['Mcp-Session-Id', 'MCP-Protocol-Version', 'Mcp-Method', 'Mcp-Name'],
];
const A_DAY = '86400';
const MOST_PARAMS = 32;

/** Without a configured origin it is a plain answer to OPTIONS, and no browser takes it for leave. */
export function preflight(visit: Visit, place: Place): void {
  if (visit.cors.length === 0) return sendEmpty(visit, 204, ['Allow', ALLOWED[place]]);
  const wanted = visit.req.headers['access-control-request-headers'] ?? '';
  sendEmpty(visit, 204, [
    ...['Access-Control-Allow-Methods', ALLOWED[place], 'Access-Control-Max-Age', A_DAY],
    ...['Access-Control-Allow-Headers', [...HEADERS, ...paramsIn(wanted)].join(', ')],
  ]);
}

/** Tools name these, so there is no list of them. */
const paramsIn = (wanted: string): string[] =>
  (wanted.match(/\bmcp-param-[\w!#$%&'*+.^`|~-]+/gi) ?? []).slice(0, MOST_PARAMS);
