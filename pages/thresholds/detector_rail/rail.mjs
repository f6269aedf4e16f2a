// The rail of detectors: a button each, and a tick that lays it over the one at hand. All text is put there as text.

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  made.append(...children)
  return made
}

const left = (value) => `${Math.min(Math.max(value, 0), 1) * 100}%`

// The bar goes from 0.5, where chance is, to 1.
const half = (area) => (area - 0.5) * 2

function bar({ value, low, high }, baseline) {
  const track = element("span", { class: "bar", "aria-hidden": "true" })
  if (low !== null && high !== null) {
    const reach = element("i")
    reach.style.left = left(half(low))
    reach.style.right = left(1 - half(high))
    track.append(reach)
  }
  if (baseline !== null) {
    const line = element("u")
    line.style.left = left(half(baseline))
    track.append(line)
  }
  if (value !== null) {
    const dot = element("b")
    dot.style.left = left(half(value))
    track.append(dot)
  }
  return track
}

function button(row, data, choose) {
  const made = element("button", { type: "button", title: row.help, "aria-pressed": String(row.name === data.current) },
    element("strong", {}, row.title), element("span", { class: "area" }, row.area),
    bar(row, data.baseline), element("span", { class: "quiet" }, row.coverage)) // prettier-ignore
  made.addEventListener("click", () => row.name !== data.current && choose(row.name))
  return made
}

// The detector at hand is on the chart anyway.
function tick(row, data, overlay) {
  const own = row.name === data.current
  const box = element("input", { type: "checkbox", "aria-label": `Overlay ${row.title}`, title: "Overlay on the chart" })
  box.checked = own || data.overlaid.includes(row.name)
  box.disabled = own || (!box.checked && data.overlaid.length >= data.most)
  box.addEventListener("change", () => {
    const others = data.overlaid.filter((name) => name !== row.name)
    overlay(box.checked ? [...others, row.name] : others)
  })
  return element("label", { class: "tick" }, box)
}

// On a narrow screen the whole rail is one selector: the detector at hand, and the others when it is pressed.
function fold(data, list) {
  const current = [...data.rows, ...data.silent].find((row) => row.name === data.current)
  const made = element("button", { type: "button", class: "fold", "aria-expanded": "false" },
    element("strong", {}, current?.title ?? ""), element("span", { class: "area" }, current?.area ?? "")) // prettier-ignore
  made.addEventListener("click", () => {
    const opened = list.classList.toggle("open")
    made.setAttribute("aria-expanded", String(opened))
  })
  return made
}

const drawn = new WeakMap() // by parent element: what it was last drawn from, and how it tells the page

const named = (control) => control?.getAttribute?.("aria-label") ?? control?.querySelector?.("strong")?.textContent

export default function ({ data, parentElement, setTriggerValue }) {
  const text = JSON.stringify(data)
  const last = drawn.get(parentElement)
  if (last?.text === text) {
    // Drawn anew under a finger or between two keys, it would lose the press.
    last.tell = setTriggerValue
    return
  }
  const now = { text, tell: setTriggerValue }
  drawn.set(parentElement, now)
  const choose = (name) => now.tell("chosen", name)
  const overlay = (names) => now.tell("overlaid", names)
  const list = element("div", { class: "list", role: "group", "aria-label": "Detectors, by AUROC and coverage" })
  const line = (row) => element("div", { class: "line" }, tick(row, data, overlay), button(row, data, choose))
  list.append(...data.rows.map(line))
  list.append(...data.notes.map((note) => element("p", {}, note)))
  if (data.silent.length) {
    const rows = data.silent.map((row) => {
      const why = element("span", { class: "why" }, row.why)
      return element("div", {}, button(row, data, choose), why)
    })
    list.append(element("details", {}, element("summary", {}, data.fold), ...rows))
  }
  // What was open before it was drawn anew stays so.
  const before = parentElement.querySelector(".rail")
  if (before?.querySelector("details[open]")) list.querySelector("details")?.setAttribute("open", "")
  const focused = named(parentElement.activeElement)
  before?.remove()
  parentElement.append(element("div", { class: "rail" }, fold(data, list), list))
  if (focused) [...list.querySelectorAll("input, button")].find((control) => named(control) === focused)?.focus()
}
