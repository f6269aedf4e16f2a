// Where things stand in the threshold chart. No page, no clock: tests/js holds it to its word.
//
// `thresholds` run from strict to loose, as a sweep does: they fall where a detector flags above, and rise where it
// flags below. What is measured at one of them holds until the next, looser one is reached.

export const scale = (from, to) => {
  const [[a, b], [c, d]] = [from, to]
  const across = (value) => (b === a ? (c + d) / 2 : c + ((value - a) / (b - a)) * (d - c))
  across.back = (pixel) => (d === c ? a : a + ((pixel - c) / (d - c)) * (b - a))
  return across
}

export const clamp = (value, low, high) => Math.min(Math.max(value, low), high)

const suspicion = (value, above) => (above ? value : -value)

// How many points are at least as strict as `threshold`: each of them is flagged there.
function countReached(thresholds, threshold, above) {
  let [low, high] = [0, thresholds.length]
  const at = suspicion(threshold, above)
  while (low < high) {
    const middle = (low + high) >> 1
    if (suspicion(thresholds[middle], above) >= at) low = middle + 1
    else high = middle
  }
  return low
}

// The point whose figures hold at `threshold`; -1 where it is stricter than every point, and flags nothing.
export const pointAt = (thresholds, threshold, above) => countReached(thresholds, threshold, above) - 1

// The point whose threshold is nearest to `threshold`, the stricter of two that are as near.
export function nearestPoint(thresholds, threshold, above) {
  if (!thresholds.length) return -1
  const stricter = pointAt(thresholds, threshold, above)
  const looser = stricter + 1
  if (stricter < 0) return 0
  if (looser >= thresholds.length) return stricter
  const away = (place) => Math.abs(thresholds[place] - threshold)
  return away(looser) < away(stricter) ? looser : stricter
}

// The threshold one point to the right (+1) or to the left (-1) on the axis of scores; the ends stay where they are.
export function stepFrom(thresholds, threshold, direction, above) {
  if (!thresholds.length) return threshold
  const strictest = thresholds.length - 1
  const at = pointAt(thresholds, threshold, above)
  const stricter = above ? direction > 0 : direction < 0
  if (stricter) {
    const next = at >= 0 && thresholds[at] === threshold ? at - 1 : at
    return thresholds[clamp(next, 0, strictest)]
  }
  return thresholds[clamp(at + 1, 0, strictest)]
}

// Of ticks in order along an axis of `length` pixels those that leave `room` pixels to the one before.
export function thinTicks(ticks, position, room) {
  const seen = []
  for (const tick of ticks) {
    const last = seen.at(-1)
    if (!last || Math.abs(position(tick.value) - position(last.value)) >= room) seen.push(tick)
  }
  return seen
}

// The corners of a line that holds each value until the next, looser threshold. Nothing where a value is unknown.
export function steps(thresholds, values, across, up, end) {
  const parts = []
  let drawn = false
  thresholds.forEach((threshold, place) => {
    const value = values[place]
    if (value === null || value === undefined) {
      drawn = false
      return
    }
    const [x, y] = [across(threshold), up(value)]
    parts.push(drawn ? `V${y.toFixed(1)}` : `M${x.toFixed(1)} ${y.toFixed(1)}`)
    const next = place + 1 < thresholds.length ? across(thresholds[place + 1]) : end
    parts.push(`H${next.toFixed(1)}`)
    drawn = true
  })
  return parts.join("")
}

// What a person typed: with a comma for thousands, a true minus sign or blanks; null where it is no number.
export function typedNumber(text) {
  const clean = text.trim().replace(/−/g, "-").replace(/[,\s]/g, "")
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(clean)) return null
  const value = Number(clean)
  return Number.isFinite(value) ? value : null
}

// A cell of CSV. A text that a spreadsheet would read as a formula is made a text.
export function cell(value) {
  if (value === null || value === undefined) return ""
  if (typeof value === "number") return String(value)
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value)
  return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text
}

export const csv = (rows) => rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n"
