// How large the texts are, as the person likes to read; this browser remembers it.

const SIZES = [0.875, 1, 1.125, 1.25, 1.5]
const SETTINGS = "touchstone-reading"

/** Gives the texts of the surface the size that was chosen last. */
export function apply(root) {
  root.style.setProperty("--size", `${chosen()}rem`)
}

/** The next larger size, or with -1 the next smaller. */
export function resize(root, by) {
  const at = SIZES.indexOf(chosen())
  const size = SIZES[Math.max(0, Math.min(SIZES.length - 1, at + by))]
  try {
    localStorage.setItem(SETTINGS, JSON.stringify({ size }))
  } catch {
    // This browser keeps nothing.
  }
  root.style.setProperty("--size", `${size}rem`)
}

function chosen() {
  try {
    const size = Number(JSON.parse(localStorage.getItem(SETTINGS))?.size)
    return SIZES.includes(size) ? size : 1
  } catch {
    return 1
  }
}
