// The threshold in the charts: a line, the flagged side tinted, a dot on the curve. Drawn into the charts' own SVG, so
// that a chart, which takes hundreds of milliseconds, is not drawn anew for it.

const SVG = "http://www.w3.org/2000/svg"

function add(group, name, attributes, text) {
  const made = document.createElementNS(SVG, name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  if (text) made.textContent = text
  group.append(made)
}

// Where a chart's data lie, all its rows together. Nothing while it is not drawn yet.
function area(plot) {
  const boxes = [...plot.querySelectorAll("rect.nsewdrag")].map((one) =>
    ["x", "y", "width", "height"].map((name) => Number(one.getAttribute(name))),
  )
  if (!boxes.length) return null
  const x = Math.min(...boxes.map((box) => box[0]))
  const y = Math.min(...boxes.map((box) => box[1]))
  return { x, y, width: boxes[0][2], height: Math.max(...boxes.map((box) => box[1] + box[3])) - y }
}

function line(group, { x, y, width, height }, data) {
  const at = x + width * Math.min(Math.max(data.across, 0), 1)
  const [from, to] = data.above ? [at, x + width] : [x, at]
  add(group, "rect", { x: from, y, width: to - from, height, fill: data.tint })
  if (data.across < 0 || data.across > 1) return
  add(group, "line", { x1: at, x2: at, y1: y, y2: y + height, stroke: data.colour, "stroke-width": 2 })
  if (to - from < 0.14 * width) return
  const anchor = data.above ? "start" : "end"
  const font = { "font-size": 12, "font-family": getComputedStyle(document.body).fontFamily }
  const word = { x: at + (data.above ? 4 : -4), y: y + 14, fill: data.colour, "text-anchor": anchor, ...font }
  add(group, "text", word, data.above ? "flagged →" : "← flagged")
}

function dot(group, { x, y, width, height }, data) {
  if (!data.dot) return
  const [across, up] = data.dot
  add(group, "circle", { cx: x + width * across, cy: y + height * (1 - up), r: 5, fill: data.colour })
}

function mark(charts, key, draw, data) {
  const plot = charts.querySelector(`.st-key-${key} .js-plotly-plot`)
  const where = plot && area(plot)
  if (!where) return
  const before = plot.querySelector(".ts-threshold")
  // What stands already is let stand: drawing it would call us again.
  const at = JSON.stringify([where, data])
  if (before?.dataset.at === at) return
  const group = document.createElementNS(SVG, "g")
  group.setAttribute("class", "ts-threshold")
  group.setAttribute("pointer-events", "none")
  group.dataset.at = at
  draw(group, where, data)
  before?.remove()
  ;[...plot.querySelectorAll("svg.main-svg")].at(-1).append(group)
}

// The line goes with the slider while it is dragged; the figures follow when it is let go.
function follow(charts, slide, data) {
  const slider = slide.querySelector("input[type=range]")
  if (!slider) return
  const [low, high] = data.span
  mark(charts, "tune_bars", line, { ...data, across: (Number(slider.value) - low) / (high - low) })
}

const observers = new WeakMap()

export default function ({ data, parentElement }) {
  observers.get(parentElement)?.disconnect()
  const [charts, slide] = ["charts", "slide"].map((name) => document.querySelector(`.st-key-tune-${name}`))
  let moved = false
  const draw = () => {
    if (!moved) mark(charts, "tune_bars", line, data)
    mark(charts, "tune_curve", dot, data)
  }
  // The charts come later than we do, and again when their size changes.
  const observer = new MutationObserver((changes) => {
    moved ||= changes.some((one) => one.attributeName === "aria-valuetext")
    draw()
    if (moved) follow(charts, slide, data)
  })
  const attributeFilter = ["width", "height", "aria-valuetext"]
  for (const one of [charts, slide]) {
    observer.observe(one, { childList: true, subtree: true, attributes: true, attributeFilter })
  }
  observers.set(parentElement, observer)
  draw()
  return () => observer.disconnect()
}
