// How somebody likes to read: the size of the texts, and the share of the width that the answer has. This browser
// remembers both.

const SIZES = [0.875, 1, 1.125, 1.25, 1.5]
const [NARROWEST, WIDEST] = [20, 75] // percent
const SETTINGS = "touchstone-reading"

/** Shows the texts as they were read last. */
export function apply(root, { size, split } = settings()) {
  root.style.setProperty("--size", `${size}rem`)
  root.style.setProperty("--split", `${split}%`)
}

/** The next larger size, or with -1 the next smaller. */
export function resize(root, by) {
  const at = SIZES.indexOf(settings().size)
  change(root, { size: SIZES[Math.max(0, Math.min(SIZES.length - 1, at + by))] })
}

/** Lets the pane with the answer be drawn wider or narrower; all traces then have that split. */
export function follow(root, pane) {
  const drawn = new ResizeObserver(() => {
    if (!pane.style.width) return
    const split = (100 * pane.offsetWidth) / pane.parentElement.offsetWidth
    pane.style.width = ""
    change(root, { split: Math.max(NARROWEST, Math.min(WIDEST, Math.round(split))) })
    // The next move may draw the pane to this very width again, which would be no news.
    drawn.unobserve(pane)
    drawn.observe(pane)
  })
  drawn.observe(pane)
}

function change(root, chosen) {
  const all = { ...settings(), ...chosen }
  apply(root, all)
  try {
    localStorage.setItem(SETTINGS, JSON.stringify(all))
  } catch {
    // This browser keeps nothing.
  }
}

function settings() {
  let kept = {}
  try {
    kept = JSON.parse(localStorage.getItem(SETTINGS)) ?? {}
  } catch {
    // Nothing that can be read is kept.
  }
  const split = Number(kept.split)
  return { size: SIZES.includes(kept.size) ? kept.size : 1, split: split >= NARROWEST && split <= WIDEST ? split : 50 }
}
