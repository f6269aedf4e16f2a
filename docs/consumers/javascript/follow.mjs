// Follows a thresholds file over HTTP, as `serve` offers it: asks again with If-None-Match, and keeps the last good one.

import { Refused, read } from "./touchstone.mjs";

/**
 * Fetches the file, then again `every` milliseconds. Throws if the first one cannot be had. Afterwards `thresholds` is
 * the last good release and `problem` why a newer one was not taken, or null. `onChange` hears of every new release,
 * `onProblem` of a problem when it begins. An older version is not taken, unless `allowOlder`. `stop()` ends it.
 */
export async function follow(url, options = {}) {
  const { every = 30_000, timeout = 10_000, headers = {}, verifyKey, allowOlder = false, onChange, onProblem } = options;
  let etag = null;
  const followed = { thresholds: null, problem: null, refresh, stop: () => clearInterval(timer) };

  async function fetchNewer() {
    const condition = etag === null ? {} : { "If-None-Match": etag };
    const answer = await fetch(url, { headers: { ...headers, ...condition }, signal: AbortSignal.timeout(timeout) });
    if (answer.status === 304) return null;
    if (!answer.ok) throw new Refused(`${answer.status} ${answer.statusText}`);
    const thresholds = read(new Uint8Array(await answer.arrayBuffer()), { verifyKey });
    const before = followed.thresholds?.version;
    if (before > thresholds.version && !allowOlder)
      throw new Refused(`version ${thresholds.version} is older than ${before}, which is in use`);
    etag = answer.headers.get("ETag");
    return thresholds;
  }

  async function refresh() {
    try {
      const newer = await fetchNewer();
      followed.problem = null;
      if (newer === null) return;
      followed.thresholds = newer;
      onChange?.(newer);
    } catch (error) {
      if (followed.thresholds === null) throw error;
      if (followed.problem === null) onProblem?.(error);
      followed.problem = error;
    }
  }

  await refresh();
  const timer = setInterval(refresh, every);
  timer.unref?.(); // does not keep a process alive that has nothing else to do
  return followed;
}
