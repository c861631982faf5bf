// Answers of the console API; docs/console-api.md says what each member means.

export const STATUSES = ['started', 'succeeded', 'failed', 'timeout', 'cancelled', 'unknown'] as const;
export type Status = (typeof STATUSES)[number];

export interface Actor {
  type: string;
  id: string | null;
  thread: string | null;
  run: string | null;
  correlation: string | null;
  parent: string | null;
  identity: string | null;
}

export interface FileChange {
  path: string;
  old_path: string | null;
  change: string | null;
  before_hash: string | null;
  after_hash: string | null;
  before_size: number | null;
  after_size: number | null;
  has_diff: boolean;
}

/** A record as listed. */
export interface Operation {
  /** Gap-free number in its sandbox; null while told live. */
  seq: number | null;
  /** Position in the journal: one order over all sandboxes. */
  cursor: number;
  id: string;
  sandbox_id: string | null;
  source: string;
  type: string;
  status: Status;
  started_at: string;
  completed_at: string | null;
  duration_ms: number | null;
  actor: Actor;
  summary: string | null;
  summary_bytes: number | null;
  exit_code: number | null;
  /** It has more output than a search looks at. */
  text_cut?: true;
  http_status: number | null;
  bytes_in: number | null;
  bytes_out: number | null;
  output: {
    stdout_bytes: number;
    stderr_bytes: number;
    stdout_total_bytes: number;
    stderr_total_bytes: number;
    complete: boolean;
    state: string;
  } | null;
  file: FileChange | null;
  verdict: { decision: string; rule: string | null } | null;
  lock: { waited_ms: number } | null;
  chain: { hash: string } | null;
  error_code: string | null;
  reason: string | null;
  folded: number | null;
  /** Only live: the beginning of the operation could not be read. */
  partial?: boolean;
}

export interface Links {
  correlation: Operation[];
  parent: Operation[];
  children: Operation[];
  rerun_of: string[] | string | null;
  reruns: string[];
  complete: boolean;
}

/** One record whole. */
export interface OperationWhole extends Operation {
  request: Record<string, unknown> | null;
  result: Record<string, unknown> | null;
  command: Record<string, unknown> | null;
  wire: Record<string, unknown> | null;
  files: { n: number; path: string; old_path: string | null; size: number | null; sha256: string | null; mode?: number | null }[] | null;
  /** How many there were: not all may be listed. */
  files_total?: number | null;
  terminal?: { session: string; mode: string; offset: number; recorded_to: number;
    commands: { at: string; command: string; derived: boolean }[] } | null;
  links: Links | null;
}

export interface FacetValues {
  values: { value: string; count: number }[];
  other: number;
}

export interface Facets {
  total: number;
  failed: number;
  exact: boolean;
  type: FacetValues;
  status: FacetValues;
  actor: FacetValues;
  sandbox: FacetValues;
  source: FacetValues;
}

export interface Histogram {
  from: string;
  to: string;
  step_ms: number;
  exact: boolean;
  counts: { total: number; failed: number }[];
}

export interface OperationPage {
  items: Operation[];
  next: number | null;
  previous: number | null;
  gaps: Operation[];
  facets?: Facets;
  histogram?: Histogram;
  complete: boolean;
}

export interface OutputPiece {
  n: number;
  stream: 'stdout' | 'stderr';
  at: string;
  bytes: number;
  text?: string;
  data_base64?: string;
  encoded?: string;
}

export interface OutputPage {
  status: Status;
  state: string;
  complete: boolean;
  items: OutputPiece[];
  last: number;
  next: number | null;
}

/** Is a history what was recorded? */
export interface Verified {
  ok: boolean | null;
  checked: number;
  entries: number;
  unsigned: number;
  fault: { seq: number | null; id: string | null; kind: string } | null;
  why: string | null;
}

export interface Sandbox {
  id: string;
  name: string;
  /** null while upstream has not named it yet. */
  state: string | null;
  image: string | null;
  created_at: string | null;
  expires_at: string | null;
  last_activity_at: string | null;
  operations: number | null;
  failures: number | null;
  running: number | null;
  gaps: number | null;
  history_bytes: number | null;
  history: 'ok' | 'none' | 'unreadable';
  upstream: boolean;
}

export interface SandboxPage {
  items: Sandbox[];
  next: string | null;
  total: number;
  upstream: 'ok' | 'partial' | 'unreachable' | 'unknown';
  complete: boolean;
}

interface Newest {
  items: Operation[];
  count: number;
  exact: boolean;
}

export interface Recorder {
  status: 'ok' | 'degraded' | 'unavailable';
  cursor: number;
  applied_cursor: number;
  lag_records: number;
  lag_ms: number;
  stalled_sandboxes: number;
  refused_records: number;
  files_lost: number;
  journal_bytes: number;
  index: { ready: boolean; files: number; operations: number; lag_ms: number };
}

export interface Overview {
  counts: Facets;
  failures: Newest;
  gaps: Newest;
  running: Newest;
  recorder: Recorder;
  complete: boolean;
}

export interface Health {
  status: 'ok' | 'degraded' | 'unavailable';
  version?: string;
  workers?: number;
  helper?: { connected: boolean; isolation: string; mode: string; sync: string; version: string };
  store?: { lag_records: number; lag_seconds: number; writable: boolean };
  upstream?: { checked_at: string; duration_ms: number; http_status: number; status: string };
}

/** Events of /live. */
export type LiveEvent =
  | { event: 'operation'; cursor: number; data: Operation & { phase: 'started' | 'completed' } }
  | { event: 'output'; cursor: number; data: {
      id: string; sandbox_id: string | null; type: string;
      pieces: { stream: 'stdout' | 'stderr'; at: string; text?: string; data_base64?: string }[];
      cut?: number;
    } }
  | { event: 'gap'; cursor: number; data: {
      sandbox_id: string | null; operations: number; output_bytes: number;
      from: string; to: string; reason: string; operation_id: string | null;
    } }
  | { event: 'lock'; cursor: number; data: Record<string, unknown> }
  | { event: 'sandbox'; cursor: number; data: {
      at: string; sandboxes: { id: string; name: string; state: string }[];
    } }
  | { event: 'reset'; cursor: number; data: { reason: string; after: number; cursor: number } };
