// The threshold chart on a page: draws it, moves its handle, and says where the handle rests.

import { clamp, nearestPoint, pointAt, stepFrom, typedNumber } from "./geometry.mjs"
import { element, make, moving, places, sign, still } from "./drawing.mjs"
import { fileName, image, save, table } from "./files.mjs"
import { addressOf, copy, menu } from "./share.mjs"
import { besideInWords, besideRows, curvesBeside } from "./beside.mjs"
import { line, put, under, words } from "./hover.mjs"

const REST = 250 // ms after the last key until the handle rests
const NARROW = 560
const FAR = 10 // labels that PageUp goes
const [LOW, HIGH] = [300, 470] // pixels of the chart's height
const AROUND = 505 // pixels of a screen beside it

const shared = (window.touchstoneThreshold ??= new EventTarget())

class Chart {
  constructor(parent) {
    this.parts = build(parent, [
      ["Copy link", "Copy the address of the page as it stands", () => this.copyLink()],
      ["PNG", "Download the chart as an image", () => this.image()],
      ["CSV", "Download every step as a table", () => this.csv()],
    ])
    this.awaiting = null // the turn that Python has not answered yet
    this.dragging = false
    this.listen()
  }

  // New arrays, or the same with other marks. The handle stays where it is while Python has not caught up with it.
  take(data, tell) {
    const same = this.data?.name === data.name
    this.data = data
    if (!same) this.awaiting = null
    const colours = data.arrays.colours
    this.marks = data.marks.map((mark) => ({ ...mark, colours }))
    this.answer(data.here)
    this.head()
    this.draw()
  }

  // What Python says holds at the threshold. Passed over where the handle has moved on since.
  answer(here) {
    if (this.awaiting !== null && here.turn !== this.awaiting) return
    this.awaiting = null
    this.here = here
    this.threshold = here.threshold
  }

  head() {
    const { names, headlines } = this.data.arrays
    this.parts.figures.replaceChildren(
      ...names.map(([name, help]) => {
        const [large, note] = [element("dd"), element("dd", { class: "note" })]
        return element("dl", { title: help }, element("dt", {}, name), large, note)
      }),
    )
    this.parts.marks.replaceChildren(
      ...this.marks.map((mark) => {
        const icon = make("svg", { width: 16, height: 16, viewBox: "-8 -8 16 16", "aria-hidden": "true" })
        icon.append(sign(mark.kind, mark.colours))
        const button = element("button", { type: "button", title: "Move the threshold here" }, icon)
        button.append(`${mark.name} ${mark.text}`)
        button.addEventListener("click", () => this.move(mark.threshold, { rest: true }))
        return button
      }),
      ...legend(this.data.arrays),
    )
    this.headlines = headlines
  }

  draw() {
    const { svg, plot, handle } = this.parts
    const width = Math.max(Math.floor(plot.clientWidth), 260)
    const height = width < NARROW ? LOW : this.tall()
    this.at = places(this.data.arrays, width, height)
    for (const [key, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) {
      svg.setAttribute(key, value)
    }
    const whole = still(this.data.arrays, this.marks, this.at)
    whole.append(...curvesBeside(this.data.arrays, this.data.beside, this.at))
    svg.replaceChildren(whole, make("g"), make("g"))
    handle.style.height = `${this.at.curves.bottom}px`
    this.place()
  }

  // As much of the screen as what stands around the chart leaves.
  tall() {
    const rows = this.data.beside.length
    return clamp(window.innerHeight - AROUND - (rows ? 22 * (rows + 1) + 8 : 0), LOW, HIGH)
  }

  // Everything that goes with the handle.
  place() {
    const { arrays } = this.data
    const known = this.threshold === this.here.threshold
    const point = pointAt(arrays.thresholds, this.threshold, arrays.above)
    const now = known
      ? this.here
      : point < 0
        ? { text: String(this.threshold), figures: null, verdict: "stop", why: "" }
        : {
            text: this.threshold === arrays.thresholds[point] ? arrays.texts[point] : String(this.threshold),
            figures: arrays.figures[point], verdict: arrays.verdicts[point], why: arrays.whys[point],
          } // prettier-ignore
    const { svg, handle, field, chip, figures, beside } = this.parts
    svg.children[1].replaceWith(moving(arrays, this.at, this.threshold, now.text))
    beside.replaceChildren(...besideRows(arrays, this.data.beside, point))
    const x = clamp(this.at.across(this.threshold), this.at.left, this.at.right)
    handle.style.transform = `translateX(${x.toFixed(1)}px)`
    if (this.parts.root.getRootNode().activeElement !== field) field.value = now.text
    ;[...figures.children].forEach((figure, place) => {
      const [large, note] = now.figures?.[place] ?? ["–", ""]
      const [, first, second] = figure.children
      first.textContent = large
      second.textContent = note
    })
    chip.dataset.state = now.verdict
    chip.lastChild.textContent = this.headlines[now.verdict]
    chip.firstChild.textContent = { holds: "✓", open: "…", stop: "⊘" }[now.verdict]
    this.say(now)
    this.mark(now)
  }

  say(now) {
    const { arrays } = this.data
    const { handle } = this.parts
    const [low, high] = arrays.span
    const words = arrays.names.map(([name], place) => `${name} ${now.figures?.[place]?.join(", ") ?? "unknown"}`)
    handle.setAttribute("aria-valuemin", low)
    handle.setAttribute("aria-valuemax", high)
    handle.setAttribute("aria-valuenow", this.threshold)
    handle.setAttribute("aria-valuetext", `${arrays.sign} ${now.text}. ${words.join(". ")}. ${this.headlines[now.verdict]}.`)
  }

  // The verdict box beside the chart goes along until Python has drawn it anew.
  mark({ verdict, why }) {
    const moves = this.awaiting !== null
    for (const box of document.querySelectorAll('[class*="st-key-verdict-"]')) {
      if (moves) box.dataset.moving = verdict
      else delete box.dataset.moving
    }
    const { headlines, strength } = this.data.arrays
    const detail = moves ? { name: this.data.name, verdict, headline: headlines[verdict], why, strength } : null
    shared.dispatchEvent(new CustomEvent("moving", { detail }))
  }

  move(threshold, { rest = false } = {}) {
    if (threshold !== this.threshold) {
      this.threshold = threshold
      this.awaiting = performance.timeOrigin + performance.now()
      this.place()
    }
    clearTimeout(this.timer)
    this.timer = null
    if (this.awaiting === null) return
    if (rest) this.rest()
    else if (!this.dragging) this.timer = setTimeout(() => ((this.timer = null), this.rest()), REST)
  }

  // Python follows: the verdict, the traces at the line, Save. The address changes without one more press of Back.
  rest() {
    const address = new URL(location.href)
    address.searchParams.set("threshold", String(this.threshold))
    history.replaceState(history.state, "", address)
    shared.tell?.({ name: this.data.name, threshold: this.threshold, turn: this.awaiting })
  }

  // What is pressed next is about the threshold that is seen.
  settle() {
    if (this.awaiting === null || this.dragging || this.timer === null) return
    clearTimeout(this.timer)
    this.timer = null
    this.rest()
  }

  step(direction, times = 1) {
    const { thresholds, above } = this.data.arrays
    let at = this.threshold
    for (let n = 0; n < times; n++) at = stepFrom(thresholds, at, direction, above)
    this.move(at)
  }

  // The label nearest to where the pointer is.
  point(event) {
    const { thresholds, above } = this.data.arrays
    const x = event.clientX - this.parts.svg.getBoundingClientRect().left
    const value = this.at.across.back(clamp(x, this.at.left, this.at.right))
    this.move(thresholds[nearestPoint(thresholds, value, above)])
  }

  listen() {
    const { plot, handle, field } = this.parts
    plot.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return
      this.dragging = true
      this.lookAway()
      plot.setPointerCapture(event.pointerId)
      handle.focus({ preventScroll: true })
      this.point(event)
      event.preventDefault()
    })
    plot.addEventListener("pointermove", (event) => {
      if (this.dragging) this.point(event)
      else if (event.pointerType === "mouse") this.look(event)
    })
    plot.addEventListener("pointerleave", () => this.lookAway())
    for (const end of ["pointerup", "pointercancel"]) {
      plot.addEventListener(end, () => {
        if (!this.dragging) return
        this.dragging = false
        this.move(this.threshold, { rest: true })
      })
    }
    handle.addEventListener("keydown", (event) => {
      const keys = {
        ArrowRight: () => this.step(+1), ArrowUp: () => this.step(+1),
        ArrowLeft: () => this.step(-1), ArrowDown: () => this.step(-1),
        PageUp: () => this.step(+1, FAR), PageDown: () => this.step(-1, FAR),
        Home: () => this.move(Math.min(...this.ends())), End: () => this.move(Math.max(...this.ends())),
        Enter: () => this.move(this.threshold, { rest: true }),
      } // prettier-ignore
      if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return
      event.preventDefault()
      keys[event.key]()
    })
    field.addEventListener("focus", () => field.select())
    field.addEventListener("keydown", (event) => event.key === "Enter" && field.blur())
    field.addEventListener("change", () => {
      const value = typedNumber(field.value)
      field.blur()
      if (value === null) this.place()
      else this.move(value, { rest: true })
    })
    field.addEventListener("blur", () => this.data && this.place())
    new ResizeObserver(() => this.data && plot.clientWidth && this.draw()).observe(plot)
    window.addEventListener("resize", () => this.data && plot.clientWidth && this.draw())
    document.addEventListener("pointerdown", (event) => !event.composedPath().includes(plot) && this.settle(), true)
    shared.addEventListener("here", () => this.hear())
  }

  // The fragment beside the chart was drawn: what it says of this very chart holds.
  hear() {
    const told = shared.here
    if (!this.data || !told || told.name !== this.data.name) return
    this.answer(told.here)
    this.place()
  }

  ends() {
    const { thresholds } = this.data.arrays
    return [thresholds[0], thresholds.at(-1)]
  }

  look(event) {
    const { svg, tip } = this.parts
    const { arrays, beside } = this.data
    const point = under(arrays, this.at, event.clientX - svg.getBoundingClientRect().left)
    if (point === null) return this.lookAway()
    const x = this.at.across(arrays.thresholds[point])
    svg.lastChild.replaceChildren(line(this.at, x))
    tip.replaceChildren(...words(arrays, beside, point))
    put(tip, this.at, x)
    tip.hidden = false
  }

  lookAway() {
    this.parts.tip.hidden = true
    this.parts.svg.lastChild?.replaceChildren()
  }

  copyLink() {
    return copy(addressOf(location.href, this.data.link, this.awaiting === null ? null : this.threshold))
  }

  csv() {
    const { arrays } = this.data
    save(new Blob([table(arrays)], { type: "text/csv" }), fileName(arrays.title, "csv"))
  }

  async image() {
    const { root, svg, figures } = this.parts
    const style = getComputedStyle(root)
    const ground = style.getPropertyValue("--st-background-color").trim() || "#fff"
    const texts = [...figures.children].map((figure) => [...figure.children].map((part) => part.textContent).join(" "))
    const lines = [this.data.arrays.title, texts.slice(0, 2).join("   ·   "), texts.slice(2).join("   ·   ")]
    const point = pointAt(this.data.arrays.thresholds, this.threshold, this.data.arrays.above)
    for (const { title, words } of besideInWords(this.data.arrays, this.data.beside, point)) {
      lines.push(`${title}, at as many flags: ${words}`)
    }
    this.lookAway()
    const blob = await image(svg, { ground, ink: style.color, font: "sans-serif", lines })
    save(blob, fileName(this.data.arrays.title, "png"))
  }
}

function legend({ colours }) {
  const swatch = (colour, name) => {
    const dot = element("i")
    dot.style.background = colour
    return element("span", {}, dot, name)
  }
  const line = (text, dashes, colour) => {
    const icon = make("svg", { width: 22, height: 8, "aria-hidden": "true" })
    icon.append(make("line", { x2: 22, y1: 4, y2: 4, stroke: colour, "stroke-width": 2, "stroke-dasharray": dashes }))
    return element("span", {}, icon, text)
  }
  return [
    swatch(colours.hallucinated, "hallucinated"), swatch(colours.clean, "clean"),
    line("precision", "none", "currentColor"), line("recall", "5 3", colours.recall),
  ] // prettier-ignore
}

function build(parent, sharing) {
  const field = element("input", { type: "text", inputmode: "decimal", "aria-label": "Threshold", autocomplete: "off" })
  const chip = element("span", { class: "chip" }, element("b"), element("span"))
  const gap = element("span", { class: "gap" })
  const top = element("div", { class: "top" }, element("label", {}, "Threshold ", field), chip, gap, menu(sharing))
  const svg = make("svg", { role: "img", "aria-label": "Scores of labelled traces, with precision and recall" })
  const handle = element("div", {
    class: "handle", role: "slider", tabindex: "0", "aria-label": "Threshold",
    "aria-orientation": "horizontal",
  }, element("i")) // prettier-ignore
  const tip = element("div", { class: "tip", hidden: "", "aria-hidden": "true" })
  const plot = element("div", { class: "plot" }, svg, handle, tip)
  const [marks, figures] = [element("div", { class: "marks", role: "group", "aria-label": "Marks" }), element("div", { class: "figures" })]
  const beside = element("div", { class: "beside" })
  const root = element("div", { class: "chart" }, top, plot, marks, figures, beside)
  parent.append(root)
  return { root, field, chip, plot, svg, handle, tip, marks, figures, beside }
}

// Streamlit calls us again with new data without cleaning up first.
const charts = new WeakMap()

export default function ({ data, parentElement }) {
  if (!charts.has(parentElement)) charts.set(parentElement, new Chart(parentElement))
  const chart = charts.get(parentElement)
  chart.take(data)
  chart.hear()
}
