// Where the rows of the list are, and which key leads where. Nothing here knows the browser's document.

// The rows to draw: those in sight and `margin` more on either side, as [first, behind the last].
export function inSight(scrollTop, height, rows, rowHeight, margin) {
  const first = Math.max(0, Math.floor(scrollTop / rowHeight) - margin)
  return [Math.min(first, rows), Math.min(rows, Math.ceil((scrollTop + height) / rowHeight) + margin)]
}

// How far to scroll so that a row is wholly in sight; as far as now, if it is.
export function reveal(index, scrollTop, height, rowHeight) {
  const top = index * rowHeight
  if (top < scrollTop) return top
  return top + rowHeight > scrollTop + height ? top + rowHeight - height : scrollTop
}

// The row that a key leads to from the one at `at` (-1: none yet); null for a key that is not the list's.
export function rowAfter(key, at, rows, page) {
  const steps = { j: 1, J: 1, ArrowDown: 1, k: -1, K: -1, ArrowUp: -1, PageDown: page, PageUp: -page }
  if (!rows) return null
  if (key === "Home") return 0
  if (key === "End") return rows - 1
  if (!Object.hasOwn(steps, key)) return null
  return Math.min(rows - 1, Math.max(0, at < 0 ? 0 : at + steps[key]))
}

// Whether a key that was pressed in this element is text of its own, or moves something of its own.
export function isTaken(tag, type, editable) {
  if (editable || tag === "TEXTAREA" || tag === "SELECT") return true
  return tag === "INPUT" && !["button", "checkbox", "radio", "submit"].includes(type)
}
