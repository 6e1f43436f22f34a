// The notifications of a server, read into our own words. One that is not what it claims to be is dropped.

import type { Progress } from '../../calls/request.ts';
import { member } from '../../protocol/json.ts';
import { isForeignNotification, type ServerNotification } from '../../protocol/methods.ts';
import { readTask, type TaskReport } from './task-report.ts';

export type Notice =
  | { readonly type: 'progress'; readonly token: string; readonly progress: Progress }
  | Withdrawn
  | TaskStatus
  | Said;
export type Said =
  | { readonly type: 'log'; readonly level: string; readonly params: Buffer }
  | { readonly type: 'listChanged'; readonly capability: string }
  | { readonly type: 'updated'; readonly uri: string; readonly params: Buffer }
  /** One that MCP does not have. */
  | { readonly type: 'foreign'; readonly method: string; readonly params: Buffer }
  | { readonly type: 'elicited'; readonly elicitationId: string; readonly params: Buffer };
type Withdrawn = { readonly type: 'withdrawn'; readonly id: string };
/** The status of a task of the server's own. */
type TaskStatus = { readonly type: 'task'; readonly task: TaskReport };

/** The notice, or why the notification is dropped. */
type Reading = Notice | string;

/** A level is part of the subject on which its line is published. */
const MAX_LEVEL = 32;

/** The table of methods says which notifications there are: each that a server may send has its reader here. */
const READERS: ReadonlyMap<string, (params: Buffer) => Reading> = new Map(
  Object.entries({
    'notifications/progress': (params) => readProgress(parsed(params)),
    'notifications/message': (params) => {
      const { level } = parsed(params);
      return { type: 'log', level: typeof level === 'string' && level.length <= MAX_LEVEL ? level : 'info', params };
    },
    'notifications/tools/list_changed': () => ({ type: 'listChanged', capability: 'tools' }),
    'notifications/resources/list_changed': () => ({ type: 'listChanged', capability: 'resources' }),
    'notifications/prompts/list_changed': () => ({ type: 'listChanged', capability: 'prompts' }),
    'notifications/resources/updated': (params) => {
      const { uri } = parsed(params);
      return typeof uri === 'string' ? { type: 'updated', uri, params } : 'an update of no resource';
    },
    'notifications/elicitation/complete': (params) => {
      const { elicitationId: id } = parsed(params);
      return typeof id === 'string' ? { type: 'elicited', elicitationId: id, params } : 'the end of no elicitation';
    },
    'notifications/tasks/status': (params) => {
      const task = readTask(params);
      return task ? { type: 'task', task } : 'the status of no task';
    },
    'notifications/cancelled': (params) => {
      const id = member(params, 'requestId');
      return id ? { type: 'withdrawn', id: id.toString() } : 'a cancellation of nothing';
    },
  } satisfies Record<ServerNotification, (params: Buffer) => Reading>),
);

export function readNotice(method: string, params: Buffer): Reading {
  const read = READERS.get(method);
  if (read) return read(params);
  return isForeignNotification(method)
    ? { type: 'foreign', method, params }
    : `an unknown notification ${method.slice(0, 60)}`;
}

function readProgress({ progressToken, progress, total, message }: Record<string, unknown>): Reading {
  if (typeof progressToken !== 'number' || typeof progress !== 'number') return 'progress without token or number';
  return {
    type: 'progress',
    token: String(progressToken),
    progress: {
      progress,
      ...(typeof total === 'number' && { total }),
      ...(typeof message === 'string' && { message }),
    },
  };
}

export function parsed(json: Buffer): Record<string, unknown> {
  const value: unknown = JSON.parse(json.toString());
  return value && typeof value === 'object' ? (value as Record<string, unknown>) : {};
}
