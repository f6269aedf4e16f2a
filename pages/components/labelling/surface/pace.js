// Time that somebody spends labelling: only while the page is in sight and they do something.

export const IDLE_AFTER = 60 // seconds without a sign of life that still count
export const BREAK_AFTER = 45 * 60 // active seconds after which a break is proposed
const RESTED = 5 * 60 // seconds of rest that count as a break

/** A clock of active time. `now` is in seconds and only grows. */
export function start(now) {
  return { at: now, trace: 0, total: 0, sinceBreak: 0, hidden: false }
}

/** A sign of life: what passed since the last one counts, up to IDLE_AFTER. */
export function touch(clock, now) {
  const passed = Math.max(0, now - clock.at)
  const active = clock.hidden ? 0 : Math.min(passed, IDLE_AFTER)
  const rested = passed - active >= RESTED
  return {
    ...clock,
    at: now,
    trace: clock.trace + active,
    total: clock.total + active,
    sinceBreak: rested ? 0 : clock.sinceBreak + active,
  }
}

/** The page went out of sight, or came back. */
export function show(clock, now, visible) {
  return { ...touch(clock, now), hidden: !visible }
}

/** The next trace: its time begins. Gives the clock and the seconds that the trace took. */
export function lap(clock, now) {
  const touched = touch(clock, now)
  return [{ ...touched, trace: 0 }, Math.round(touched.trace * 1000) / 1000]
}

export const needsBreak = (clock) => clock.sinceBreak >= BREAK_AFTER
export const rest = (clock) => ({ ...clock, sinceBreak: 0 })

/** Seconds a label, from the median of the last twenty; null without any. */
export function pace(seconds) {
  const last = seconds.slice(-20).sort((a, b) => a - b)
  return last.length ? last[Math.floor(last.length / 2)] : null
}

/** "12 s each · about 29 min left" */
export function inWords(each, left) {
  if (each === null || each === undefined) return ""
  const words = `${Math.max(1, Math.round(each))} s each`
  if (!left) return words
  const seconds = each * left
  if (seconds < 90) return `${words} · about a minute left`
  const minutes = Math.round(seconds / 60)
  return `${words} · about ${minutes < 100 ? `${minutes} min` : `${Math.round(minutes / 60)} h`} left`
}
