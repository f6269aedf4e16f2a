// Text in code points, as Python counts: an offset here is text[offset] there. Nothing here knows the page.

const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\u3164\ufeff\uffa0\u{e0000}-\u{e007f}]/u
const NAMES = { "\u001b": "ESC", "\u202e": "RLO", "\u202d": "LRO", "\u2066": "LRI", "\u2067": "RLI", "\u2069": "PDI" }
const MOST_CHIPS = 2000

/** How many code points a string holds. */
export function length(text) {
  let count = 0
  for (const _ of text) count += 1
  return count
}

/** The code-point offset of a UTF-16 offset; one amid a pair counts as before it. */
export function toPoints(text, units) {
  let count = 0
  let at = 0
  for (const character of text) {
    at += character.length
    if (at > units) break
    count += 1
  }
  return count
}

/** Names an invisible character as the server does: RLO, ESC, U+200B. */
export function nameOf(character) {
  return NAMES[character] ?? `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`
}

// Joiners that a script or an emoji needs are spelling: they stand between two characters beyond ASCII.
function isJoiner(points, at) {
  const joins = points[at] === "\u200c" || points[at] === "\u200d"
  return joins && at > 0 && points[at - 1] > "\u007f" && at + 1 < points.length && points[at + 1] > "\u007f"
}

const isUnseen = (points, at) => UNSEEN.test(points[at]) && !isJoiner(points, at)

/**
 * The text in order as pieces that a page can show: {start, end, text} with the marks that cover it, or a chip {name,
 * count} for invisible characters, or {inserted} for a line break that is not of the text.
 *
 * @param {string} text
 * @param {{start: number, end: number}[]} marks
 * @param {[number, string][]} breaks where to break a line of JSON
 */
export function pieces(text, marks = [], breaks = []) {
  const points = [...text]
  const inserted = new Map(breaks)
  const edges = new Set([0, points.length, ...inserted.keys()])
  for (const mark of marks) {
    if (mark.start < mark.end && mark.start < points.length) {
      edges.add(mark.start)
      edges.add(Math.min(mark.end, points.length))
    }
  }
  const cuts = [...edges].sort((a, b) => a - b)
  const made = []
  let chips = MOST_CHIPS
  for (let i = 0; i + 1 < cuts.length; i += 1) {
    const [start, end] = [cuts[i], cuts[i + 1]]
    if (inserted.has(start)) made.push({ inserted: inserted.get(start) })
    const covering = marks.filter((mark) => mark.start <= start && end <= mark.end)
    let from = start
    for (let at = start; at < end; ) {
      if (chips === 0 || !isUnseen(points, at)) {
        at += 1
        continue
      }
      let after = at + 1
      while (after < end && points[after] === points[at] && isUnseen(points, after)) after += 1
      if (from < at) made.push({ start: from, end: at, text: points.slice(from, at).join(""), marks: covering })
      made.push({ start: at, end: after, name: nameOf(points[at]), count: after - at, marks: covering })
      chips -= 1
      from = at = after
    }
    if (from < end) made.push({ start: from, end, text: points.slice(from, end).join(""), marks: covering })
  }
  return made
}

/** A selection without the blanks around it; null where nothing else is in it. */
export function trimmed(text, start, end) {
  const points = [...text]
  let [from, to] = [Math.max(0, Math.min(start, end)), Math.min(points.length, Math.max(start, end))]
  while (from < to && /\s/u.test(points[from])) from += 1
  while (from < to && /\s/u.test(points[to - 1])) to -= 1
  return from < to ? { start: from, end: to } : null
}

/** The spans with one more: what it overlaps of the same kind joins it, and the same one again goes. */
export function toggled(spans, span) {
  const same = (other) => other.start === span.start && other.end === span.end
  if (spans.some((other) => same(other) && other.kind === span.kind)) return spans.filter((other) => !same(other))
  const rest = []
  let { start, end } = span
  for (const other of spans) {
    if (same(other)) continue
    if (other.kind === span.kind && other.start < end && start < other.end) {
      start = Math.min(start, other.start)
      end = Math.max(end, other.end)
    } else rest.push(other)
  }
  return [...rest, { start, end, kind: span.kind }].sort((a, b) => a.start - b.start || a.end - b.end)
}

/** The sentence that J or K leads to: the first press goes to the first or the last. Null where there is none. */
export function step(sentences, at, by) {
  if (!sentences.length) return null
  if (at === null || at === undefined) return by > 0 ? 0 : sentences.length - 1
  return Math.max(0, Math.min(sentences.length - 1, at + by))
}

/** Where a word is in a text, without regard to case: [start, end] in UTF-16 units, at most `most` of them. */
export function finds(text, wanted, most = 500) {
  const [where, what] = [text.toLowerCase(), wanted.trim().toLowerCase()]
  const hits = []
  if (!what || where.length !== text.length) return hits
  for (let at = where.indexOf(what); at >= 0 && hits.length < most; at = where.indexOf(what, at + what.length)) {
    hits.push([at, at + what.length])
  }
  return hits
}
