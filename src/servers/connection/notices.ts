// What a server says unasked, read into our own words. A notification that is not what it claims to be is a stray.

import type { Progress } from '../../calls/request.ts';
import { member } from '../../protocol/json.ts';
import { readTask, type TaskReport } from './task-report.ts';

export type Notice =
  | { readonly type: 'progress'; readonly token: string; readonly progress: Progress }
  | Withdrawn
  | TaskStatus
  | Said;
export type Said =
  | { readonly type: 'log'; readonly level: string; readonly params: Buffer }
  | { readonly type: 'listChanged'; readonly kind: 'tools' | 'resources' | 'prompts' }
  | { readonly type: 'updated'; readonly uri: string; readonly params: Buffer }
  | { readonly type: 'elicited'; readonly elicitationId: string; readonly params: Buffer };
type Withdrawn = { readonly type: 'withdrawn'; readonly id: string };
/** How a task of the server's own is. */
type TaskStatus = { readonly type: 'task'; readonly task: TaskReport };

/** The notice, or why it is none. */
export function readNotice(method: string, params: Buffer): Notice | string {
  switch (method) {
    case 'notifications/progress':
      return readProgress(parsed(params));
    case 'notifications/message': {
      const { level } = parsed(params);
      return { type: 'log', level: typeof level === 'string' ? level : 'info', params };
    }
    case 'notifications/tools/list_changed':
      return { type: 'listChanged', kind: 'tools' };
    case 'notifications/resources/list_changed':
      return { type: 'listChanged', kind: 'resources' };
    case 'notifications/prompts/list_changed':
      return { type: 'listChanged', kind: 'prompts' };
    case 'notifications/resources/updated': {
      const { uri } = parsed(params);
      return typeof uri === 'string' ? { type: 'updated', uri, params } : 'an update of no resource';
    }
    case 'notifications/elicitation/complete': {
      const { elicitationId } = parsed(params);
      if (typeof elicitationId !== 'string') return 'the end of no elicitation';
      return { type: 'elicited', elicitationId, params };
    }
    case 'notifications/tasks/status': {
      const task = readTask(params);
      return task ? { type: 'task', task } : 'the status of no task';
    }
    case 'notifications/cancelled': {
      const id = member(params, 'requestId');
      return id ? { type: 'withdrawn', id: id.toString() } : 'a cancellation of nothing';
    }
    default:
      return `an unknown notification ${method.slice(0, 60)}`;
  }
}

function readProgress({ progressToken, progress, total, message }: Record<string, unknown>): Notice | string {
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
