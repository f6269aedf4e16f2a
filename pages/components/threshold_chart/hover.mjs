// The figures where the pointer is. The handle stays where it stands.

import { clamp, nearestPoint } from "./geometry.mjs"
import { element, make } from "./drawing.mjs"
import { besideInWords } from "./beside.mjs"

const WIDE = 250 // pixels that the words may take

export function line(at, x) {
  return make("line", {
    x1: x, x2: x, y1: at.bars.top, y2: at.curves.bottom, stroke: "currentColor", "stroke-opacity": 0.55,
    "stroke-dasharray": "2 3",
  }) // prettier-ignore
}

// The step under the pointer, `x` pixels into the chart; null outside of it.
export function under(arrays, at, x) {
  if (x < at.left || x > at.right) return null
  const point = nearestPoint(arrays.thresholds, at.across.back(x), arrays.above)
  return point < 0 ? null : point
}

export function words(arrays, beside, point) {
  const row = (...parts) => element("span", {}, ...parts)
  const figures = arrays.names.map(([name], place) => row(`${name} `, element("b", {}, arrays.figures[point][place][0])))
  const others = besideInWords(arrays, beside, point).map(({ title, words }) => row(element("b", {}, title), ` ${words}`))
  return [row(`${arrays.sign} ${arrays.texts[point]}`), ...figures, ...others]
}

// Beside the pointer, on the side that has room.
export function put(tip, at, x) {
  const left = x + 14 + WIDE > at.width ? x - 14 - WIDE : x + 14
  tip.style.left = `${clamp(left, 0, Math.max(at.width - WIDE, 0))}px`
  tip.style.top = `${at.bars.top}px`
  tip.style.width = `${WIDE}px`
}
