/** The newest format that this reader knows. */
export const FORMAT: 2;

/** A file that must not be used; the message is a sentence for the log. */
export class Refused extends Error {}

export type Verdict = "ACCEPT" | "REVIEW" | "REJECT";
export type Tier = "page" | "signal" | "off";
export type FlagWhen = "above" | "below";

/** A share, 0 to 1, with its two-sided interval; null where it is not known. */
export interface Interval {
  readonly value: number | null;
  readonly low: number | null;
  readonly high: number | null;
}

export interface Metrics {
  readonly precision: Interval;
  readonly recall: Interval;
  readonly flag_rate: Interval;
  /** Of detectors only. */
  readonly fpr?: Interval;
  readonly n: number;
  readonly positives: number;
  readonly confidence: number;
}

/** On which traces production runs a detector: a share, above 0 and up to 1, of those with all these attributes. */
export interface Sampling {
  readonly rate: number;
  readonly only_when: Readonly<Record<string, string>>;
}

/** A threshold of its own for one segment of the traffic, with what was measured there. */
export interface SegmentThreshold {
  readonly threshold: number;
  readonly n: number;
  readonly positives: number;
  readonly precision: Interval;
  readonly recall: Interval;
  readonly [key: string]: unknown;
}

/** `by` tells the segments apart: operation, model, language or attributes.NAME. */
export interface Segments {
  readonly by: string;
  readonly thresholds: Readonly<Record<string, SegmentThreshold>>;
}

export interface Detector {
  readonly version: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly revision: string;
  readonly flag_when: FlagWhen;
  /** In the detector's own units. A score equal to it flags. */
  readonly threshold: number;
  readonly tier: Tier;
  readonly policy: string;
  readonly metrics: Metrics;
  readonly coverage: number;
  readonly feasible: boolean;
  readonly sampling?: Sampling;
  readonly segments?: Segments;
  readonly [key: string]: unknown;
}

export interface Ensemble {
  readonly rule: Readonly<{ form: string } & Record<string, unknown>>;
  readonly members: readonly string[];
  readonly cuts: { readonly page: number | null; readonly signal: number | null };
  readonly metrics: Metrics;
  readonly budget: number;
  readonly [key: string]: unknown;
}

/** One release, as the file has it. Pass on the file's bytes rather than this: a reader ignores keys it does not know. */
export interface Thresholds {
  readonly touchstone_thresholds: number;
  readonly version: number;
  readonly released_at: string;
  readonly released_by: string;
  readonly note: string;
  readonly replaces: number | null;
  readonly digest: string;
  readonly detectors: Readonly<Record<string, Detector>>;
  readonly ensembles?: Readonly<Record<string, Ensemble>>;
  readonly [key: string]: unknown;
}

export interface ReadOptions {
  /** Public Ed25519 keys in PEM: take only what one of them signed. */
  verifyKey?: string | readonly string[];
  /** The format's JSON Schema; default: the one beside this module. */
  schema?: object;
}

/** Scores of one answer by detector; null, undefined, NaN and infinities where a detector could not score. */
export type Scores = Readonly<Record<string, number | null | undefined>>;

export interface DecideOptions {
  /** The verdict if nothing could be scored; default "review". */
  onMissing?: "review" | "accept" | "reject";
  /** Detectors that were not to score this answer, as the release's sampling leaves it out. */
  skipped?: readonly string[];
  /** Of which segments the answer is: { operation: "qa", "attributes.tier": "gold" }. Default: of none. */
  segments?: Readonly<Record<string, string | number | boolean | null | undefined>>;
}

export interface Decision {
  /** What flagged: detectors, then ensembles, each by name. */
  flags: string[];
  tier: Tier;
  verdict: Verdict;
  /** For people. */
  reasons: string[];
  version: number;
  scored: string[];
  missing: string[];
  unknown: string[];
  unscored: boolean;
}

/** Read a release from the bytes of a file. Throws Refused unless it is whole, unchanged and of a format known here. */
export function read(bytes: Uint8Array, options?: ReadOptions): Thresholds;
/** Read a release from a file. */
export function load(path: string | URL, options?: ReadOptions): Thresholds;
export function decide(thresholds: Thresholds, scores: Scores, options?: DecideOptions): Decision;
/** P(hallucinated) that the file's map gives to a detector's score; null without a score or a map. */
export function probability(thresholds: Thresholds, detector: string, score: number | null | undefined): number | null;
/** The canonical form (RFC 8785) that digest and signature are made of. */
export function canonical(value: unknown): string;
/** The digest that a document should have. */
export function digestOf(document: object): string;
