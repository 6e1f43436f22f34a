// What the tables hold, row by row. Times named `at`, `*_at` are milliseconds since 1970.

export type ProcessRow = {
  kind: string;
  name: string;
  pid: number;
  start_time: string;
  boot_id: string;
  daemon: string;
  at: number;
};
export type CatalogRow = { server: string; kind: string; body: Buffer; hash: string; fetched_at: number };
export type OutboxRow = { id: number; subject: string; message_id: string; payload: Buffer; created_at: number };
export type RefusedRow = { id: number; message_id: string; subject: string; bytes: number; why: string; at: number };
export type AuditRow = {
  id: number;
  at: number;
  daemon: string;
  door: string;
  principal: string;
  request_id: string;
  server: string;
  method: string;
  name: string;
  outcome: string;
  code: number | null;
  error: string | null;
  duration_us: number;
  bytes_in: number;
  bytes_out: number;
  /** The page that holds it. */
  page: number;
};

export type SessionRow = {
  id: string;
  principal: string;
  door: string;
  scope: string;
  era: string;
  client: string;
  capabilities: string;
  level: string | null;
  created_at: number;
  used_at: number;
};
export type StreamRow = { id: string; session: string; request_id: string; daemon: string; is_over: number };
export type EventRow = { seq: number; frame: Buffer; is_last: number };

export type CredentialRow = {
  kind: string;
  issuer: string;
  server: string;
  resource: string;
  principal: string;
  body: Buffer;
  version: string;
  at: number;
};
export type AskRow = {
  id: string;
  kind: string;
  server: string;
  tool: string;
  principal: string;
  daemon: string;
  status: 'open' | 'answered' | 'ended';
  /** Which kind of answer is wanted next. */
  stage: string;
  /** Sealed; null once the ask has ended. */
  body: Buffer | null;
  answer: Buffer | null;
  answered_by: string | null;
  token: string | null;
  outcome: string | null;
  opened_at: number;
  expires_at: number;
  ended_at: number | null;
};

export type LeaseRow = { name: string; owner: string; epoch: number; until: number };

export type TaskRow = {
  seq: number;
  id: string;
  principal: string;
  server: string;
  tool: string;
  door: string;
  /** The session of the host that created the task; null when it was created without one. */
  session: string | null;
  status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';
  message: string | null;
  /** `dispatching` is committed before the first byte may reach the server. */
  phase: 'queued' | 'dispatching' | 'ended';
  attempt: number;
  /** The id of the server's own task. */
  upstream: string | null;
  /** The life of the daemon that runs the task; empty when none does. */
  owner: string;
  epoch: number;
  /** Hash of the idempotency key. */
  key: string | null;
  /** Hash of what was called, so that a key means one call. */
  fingerprint: string;
  progress: string | null;
  ttl: number;
  created_at: number;
  updated_at: number;
  created_tick: number;
  expires_tick: number;
  /** `result`, `toolError`, or the code of a failure. */
  outcome: string | null;
  delivery: string | null;
};
export type LifeRow = { id: string; daemon: string; boot: string; beat: number };
