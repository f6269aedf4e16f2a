// Other detectors on the same chart: what each would do at as many flags as the threshold at hand makes.

import { steps } from "./geometry.mjs"
import { element, make } from "./drawing.mjs"

// Precision in a whole line and recall in a broken one, as those of the detector at hand, in a colour of its own.
export function curvesBeside(arrays, beside, at) {
  const end = arrays.above ? at.left : at.right
  return beside.flatMap(({ colour, precision, recall }) =>
    [[precision, "none"], [recall, "5 3"]].map(([values, dashes]) =>
      make("path", {
        d: steps(arrays.thresholds, values, at.across, at.share, end), fill: "none", stroke: colour,
        "stroke-width": 1.75, "stroke-dasharray": dashes,
      }),
    ),
  ) // prettier-ignore
}

// The same in words, at one step of the sweep.
export function besideInWords(arrays, beside, point) {
  const [[right], [finds]] = arrays.names
  return beside.map(({ title, colour, texts }) => {
    const [precision, recall] = texts[point] ?? ["–", "–"]
    return { title, colour, words: `${right} ${precision} · ${finds} ${recall}` }
  })
}

export function besideRows(arrays, beside, point) {
  if (!beside.length) return []
  const rows = besideInWords(arrays, beside, point).map(({ title, colour, words }) => {
    const dot = element("i")
    dot.style.background = colour
    return element("p", {}, dot, element("b", {}, title), ` ${words}`)
  })
  return [element("p", { class: "quiet" }, "At as many flags"), ...rows]
}
