// The chart as SVG. It stands alone, with colours and sizes in its own attributes, so that it can be saved as an image.

import { clamp, scale, steps, thinTicks } from "./geometry.mjs"

const SVG = "http://www.w3.org/2000/svg"
const SMALL = 12

export function make(name, attributes = {}, text = "") {
  const element = document.createElementNS(SVG, name)
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
  if (text) element.textContent = text
  return element
}

// Where everything lies in a chart of this size: scores across, labels above, shares below.
export function places(arrays, width, height) {
  const [left, right] = [46, width - 12]
  const bars = { top: 30, bottom: Math.round(height * 0.52) }
  const curves = { top: bars.bottom + 18, bottom: height - 40 }
  return {
    width, height, left, right, bars, curves,
    across: scale(arrays.span, [left, right]),
    up: scale([0, arrays.bars.top || 1], [bars.bottom, bars.top + 6]),
    share: scale([0, 1], [curves.bottom, curves.top]),
  } // prettier-ignore
}

// An element of HTML: text is put there as text.
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  made.append(...children)
  return made
}

const word = (x, y, text, more = {}) => make("text", { x, y, "font-size": SMALL, fill: "currentColor", ...more }, text)
const quiet = { "fill-opacity": 0.72 }
const rule = (x1, y1, x2, y2, opacity = 0.16) =>
  make("line", { x1, y1, x2, y2, stroke: "currentColor", "stroke-opacity": opacity })

// All that stays while the threshold moves.
export function still(arrays, marks, at) {
  const group = make("g")
  group.append(...axes(arrays, at), ...columns(arrays, at), ...curves(arrays, at), ...marks.map((mark) => flag(mark, at)))
  return group
}

function axes(arrays, at) {
  const { left, right, bars, curves: below } = at
  const drawn = [rule(left, bars.bottom, right, bars.bottom, 0.5)]
  for (const { value, text } of arrays.up) {
    if (value) drawn.push(rule(left, at.up(value), right, at.up(value)))
    drawn.push(word(left - 6, at.up(value) + 4, text, { "text-anchor": "end", ...quiet }))
  }
  for (const { value, text } of arrays.shares) {
    drawn.push(rule(left, at.share(value), right, at.share(value), value ? 0.16 : 0.5))
    drawn.push(word(left - 6, at.share(value) + 4, text, { "text-anchor": "end", ...quiet }))
  }
  for (const { value, text } of thinTicks(arrays.across, at.across, 56)) {
    const x = clamp(at.across(value), left + 4, right - 8)
    drawn.push(word(x, below.bottom + 17, text, { "text-anchor": "middle", ...quiet }))
  }
  drawn.push(word((left + right) / 2, at.height - 6, `Score: ${arrays.unit}`, { "text-anchor": "middle", ...quiet }))
  drawn.push(word(2, 12, arrays.bars.unit, quiet))
  return drawn
}

function columns(arrays, at) {
  const { edges, clean, hallucinated } = arrays.bars
  const drawn = []
  clean.forEach((count, place) => {
    const [from, to] = [at.across(edges[place]), at.across(edges[place + 1])]
    const width = Math.max(to - from - 1, 0.8)
    const [foot, middle, top] = [0, count, count + hallucinated[place]].map(at.up)
    if (count) drawn.push(make("rect", { x: from, y: middle, width, height: foot - middle, fill: arrays.colours.clean }))
    if (hallucinated[place]) {
      drawn.push(make("rect", { x: from, y: top, width, height: middle - top, fill: arrays.colours.hallucinated }))
    }
  })
  return drawn
}

function curves(arrays, at) {
  const end = arrays.above ? at.left : at.right
  const line = (name, more) => {
    const values = arrays.values[name].map(([value]) => value)
    const d = steps(arrays.thresholds, values, at.across, at.share, end)
    return make("path", { d, fill: "none", "stroke-width": 2, ...more })
  }
  return [
    line("precision", { stroke: "currentColor", "stroke-opacity": 0.8 }),
    line("recall", { stroke: arrays.colours.recall, "stroke-dasharray": "5 3" }),
  ]
}

const SIGNS = { policy: "M-5 0A5 5 0 1 0 5 0A5 5 0 1 0 -5 0Z", elbow: "M0 -6L6 0L0 6L-6 0Z", live: "M-5 -5H5V5H-5Z" }

// The sign of a mark, on the line between bars and curves.
export function sign(kind, colours) {
  const stroke = { policy: colours.here, elbow: colours.clean, live: "currentColor" }[kind]
  return make("path", { d: SIGNS[kind], fill: "none", stroke, "stroke-width": 2 })
}

function flag(mark, at) {
  const x = at.across(mark.threshold)
  if (!(x >= at.left && x <= at.right)) return make("g")
  const group = make("g", { transform: `translate(${x.toFixed(1)} ${at.bars.bottom + 9})` })
  group.append(sign(mark.kind, mark.colours))
  return group
}

// The threshold: a line through both parts, the flagged side tinted, and where it stands in words.
export function moving(arrays, at, threshold, text) {
  const group = make("g")
  const x = at.across(threshold)
  const seen = clamp(x, at.left, at.right)
  const [from, to] = arrays.above ? [seen, at.right] : [at.left, seen]
  const colour = arrays.colours.here
  group.append(
    make("rect", {
      x: from, y: at.bars.top, width: to - from, height: at.curves.bottom - at.bars.top, fill: colour,
      "fill-opacity": 0.1,
    }),
  ) // prettier-ignore
  if (x < at.left || x > at.right) return group
  group.append(make("line", { x1: x, x2: x, y1: 16, y2: at.curves.bottom, stroke: colour, "stroke-width": 2.5 }))
  const leans = x > at.left + (at.right - at.left) * 0.6
  const words = { "text-anchor": leans ? "end" : "start", "font-weight": 600, "font-size": 13 }
  const arrow = arrays.above ? "flagged →" : "← flagged"
  group.append(word(x + (leans ? -16 : 16), 15, `${arrays.sign} ${text}  ${arrow}`, words))
  return group
}
