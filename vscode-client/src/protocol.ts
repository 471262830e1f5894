/** What crosses between the extension and the server, beside LSP itself. See docs/settings.md of the server. */

export type State = "starting" | "idle" | "analysing" | "checking" | "paused" | "error";
export type Verdict = "equivalent" | "different" | "unchecked";
export type Migration = "not started" | "converted" | "gaps" | "different" | "equivalent";

/** `t2j/status`, from the server. */
export interface Status {
  state: State;
  uri?: string;
  device?: string;
  reason?: string;
  /** The step of the running check, and how many wait behind it. */
  message?: string;
  waiting?: number;
}

/** The answer to `t2j.containment`: by what each part of a check is held on this system. */
export interface Containment {
  files: string;
  reads: string;
  network: string;
  processes: string;
  memory: string;
  /** What is not held, in plain sentences without a full stop. */
  not_held: string[];
}

export interface ObjectVerdict {
  name: string;
  verdict: Verdict;
  reason: string | null;
  stages: Record<string, { result: string; reason: string | null; max_rel_err: number | null }>;
}

/** What the verdict on a file covers. */
export interface Coverage {
  text: string;
  complete: boolean;
  classes: Partial<Record<Verdict, number>>;
  functions: Partial<Record<Verdict, number>>;
  not_run: Uncovered[];
  branches: Uncovered[];
  training: { name: string; line: number }[];
  /** Lines of the conversion. */
  gaps: number[];
}

/** Code that was converted and did not run; lines count from 1. */
export interface Uncovered {
  name: string;
  kind: "class" | "function" | "method" | "script" | "branch";
  line: number;
  end_line: number;
}

/** `t2j/checked`, from the server, and the answer to `t2j.check`. */
export interface Checked {
  uri: string;
  converted: string | null;
  verdict: Verdict;
  /** The verdict in a line, with what it covers. */
  message: string;
  coverage: Coverage | null;
  stale: boolean;
  problem: string | null;
  device: string;
  objects: ObjectVerdict[];
}

/** The answer to `t2j.run`. */
export interface Ran {
  uri: string;
  verdict: Verdict;
  /** The verdict in a line. */
  message: string;
}

/** The answer to `t2j.previewFile`. */
export interface Preview {
  uri: string;
  target: string | null;
  code: string;
  exists: boolean;
  /** Lines, from 0: where to start reading, and where each definition of the user's is. */
  first: number;
  places: Record<string, number>;
  merged: boolean;
  conflicts: number;
  gaps: number;
  notes: number;
}

/** The answer to `t2j.convertFile`. */
export interface Applied {
  applied: boolean;
  reason?: string;
  uri?: string;
  gaps: number;
  notes: number;
}

/** The answer to `t2j.convertAndCheck`. */
export interface AppliedAndChecked extends Applied {
  checked: Checked | null;
}

/** The answer to `t2j.askPreview`: what a model would be sent first. */
export interface Prompt {
  host: string;
  models: string[];
  text: string;
  /** About how many. */
  tokens: number;
  /** The fixed bugs in it, by their names. */
  fixes: string[];
}

/** The answer to `t2j.ask`. */
export interface Asked {
  applied: boolean;
  reason?: string;
  uri?: string;
}

export interface BulkApplied {
  converted: string[];
  skipped: { uri: string; reason: string }[];
}

export interface Value {
  /** Null where the conversion is no file yet. */
  uri: string | null;
  line: number;
  text: string;
  shape: number[];
  dtype: string;
  min: number | null;
  max: number | null;
  mean: number | null;
  std: number | null;
  /** What is not finite comes as text: "nan", "inf" or "-inf". */
  values: (number | string)[];
}

export interface Histogram {
  edges: number[];
  torch: number[];
  jax: number[];
}

export interface Step {
  target: string;
  agree: boolean;
  max_abs_err: number | null;
  max_rel_err: number | null;
  torch: Value | null;
  jax: Value | null;
  histogram: Histogram | null;
  /** The element at which the sides are farthest apart, in torch's order of axes. */
  worst: { index: number[]; torch: number | string; jax: number | string } | null;
}

/** A bug of a conversion that was fixed: one that t2j brings, or the user's own. */
export interface FixedBug {
  id: string;
  title: string;
  yours: boolean;
  program: string;
  Error_Code: string;
  Error: string;
  Fix_info: string;
  Fixed_Code: string;
}

/** The answer to `t2j.fixedBugs`. */
export interface FixedBugs {
  fixes: FixedBug[];
  text: string;
}

/** The answer to `t2j.explainDifference`. */
export interface Difference {
  name: string;
  verdict: Verdict;
  what: string;
  cause: string | null;
  device: string;
  torch: { uri: string };
  jax: { uri: string | null };
  /** Null where nothing could be run. */
  precision: string | null;
  steps: Step[];
  first: number | null;
  text: string;
  /** Fixed bugs that are really like it; mostly none. */
  similar: FixedBug[];
}

export interface SymbolState {
  name: string;
  kind: "class" | "function";
  line: number;
  state: Migration;
  gaps: number;
  reason: string | null;
}

export interface FileState {
  uri: string;
  path: string;
  folder: string;
  state: Migration;
  converted: string | null;
  gaps: number;
  symbols: SymbolState[];
}

/** The answer to `t2j/workspace`. */
export interface Workspace {
  files: FileState[];
  counts: Record<Migration, number>;
  problems: string[];
  complete: boolean;
}

/** The answer to `t2j.explain`. */
export interface Rule {
  name: string;
  signature: string;
  jax: string | null;
  fidelity: string;
  note: string | null;
  subject: string;
}
