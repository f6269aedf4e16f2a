// The rail of detectors: a button each. All text is put there as text.

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  made.append(...children)
  return made
}

const left = (value) => `${Math.min(Math.max(value, 0), 1) * 100}%`

// The bar goes from 0.5, where chance is, to 1.
const half = (area) => (area - 0.5) * 2

function bar({ value, low, high }) {
  const track = element("span", { class: "bar", "aria-hidden": "true" })
  if (low !== null && high !== null) {
    const reach = element("i")
    reach.style.left = left(half(low))
    reach.style.right = left(1 - half(high))
    track.append(reach)
  }
  if (value !== null) {
    const dot = element("b")
    dot.style.left = left(half(value))
    track.append(dot)
  }
  return track
}

function button(row, current, choose) {
  const made = element("button", { type: "button", title: row.help, "aria-pressed": String(row.name === current) },
    element("strong", {}, row.title), element("span", { class: "area" }, row.area),
    bar(row), element("span", { class: "quiet" }, row.coverage)) // prettier-ignore
  made.addEventListener("click", () => row.name !== current && choose(row.name))
  return made
}

export default function ({ data, parentElement, setTriggerValue }) {
  const choose = (name) => setTriggerValue("chosen", name)
  const list = element("div", { class: "rail", role: "group", "aria-label": "Detectors, by AUROC and coverage" })
  list.append(...data.rows.map((row) => button(row, data.current, choose)))
  if (data.silent.length) {
    const rows = data.silent.map((row) => button(row, data.current, choose))
    list.append(element("details", {}, element("summary", {}, data.fold), ...rows))
  }
  parentElement.querySelector(".rail")?.remove()
  parentElement.append(list)
}
