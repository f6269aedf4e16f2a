import type { Thresholds } from "./touchstone.mjs";

export interface FollowOptions {
  /** Milliseconds between requests; default 30,000. */
  every?: number;
  /** Milliseconds that one request may take; default 10,000. */
  timeout?: number;
  /** For instance { Authorization: "Bearer …" }. */
  headers?: Record<string, string>;
  verifyKey?: string | readonly string[];
  /** Take a release with a lower version than the one in use. */
  allowOlder?: boolean;
  onChange?: (thresholds: Thresholds) => void;
  onProblem?: (error: Error) => void;
}

export interface Followed {
  /** The last good release. */
  readonly thresholds: Thresholds;
  /** Why a newer one was not taken; null where all is well. */
  readonly problem: Error | null;
  /** Ask now. */
  refresh(): Promise<void>;
  stop(): void;
}

/** Follow a thresholds file over HTTP. Rejects if the first one cannot be had. */
export function follow(url: string | URL, options?: FollowOptions): Promise<Followed>;
