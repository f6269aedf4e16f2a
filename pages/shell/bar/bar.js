// The bar, its help and the command palette. Text enters the page by textContent only.

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value)
    else node.setAttribute(name, value === true ? "" : value)
  }
  node.append(...children.filter((child) => child !== null && child !== undefined))
  return node
}

// Streamlit calls us again with new data without cleaning up first.
const mounted = new WeakMap()

export default function (component) {
  const { data, parentElement, setTriggerValue } = component
  if (!data.bar) {
    document.querySelector(".ts-bar")?.dispatchEvent(new CustomEvent("ts-labels", { detail: data.labels }))
    return
  }
  let frame = mounted.get(parentElement)
  if (!frame) {
    frame = new Frame(parentElement)
    mounted.set(parentElement, frame)
  }
  frame.go = (page, query) => setTriggerValue("go", { page, query: query ?? null })
  frame.tell = (what, value) => setTriggerValue(what, value)
  frame.show(data)
  return () => {
    frame.leave()
    mounted.delete(parentElement)
  }
}

class Frame {
  constructor(parent) {
    this.bar = make("header", { class: "ts-bar" })
    this.bar.addEventListener("ts-labels", (event) => this.showLabels(event.detail))
    parent.append(this.bar)
    this.onKey = (event) => this.key(event)
    window.addEventListener("keydown", this.onKey, true)
    this.sizes = new ResizeObserver(() => {
      document.documentElement.style.setProperty("--bar-height", `${this.bar.offsetHeight}px`)
    })
    this.sizes.observe(this.bar)
  }

  leave() {
    window.removeEventListener("keydown", this.onKey, true)
    this.sizes.disconnect()
    this.open?.close()
    this.bar.remove()
  }

  show(data) {
    const { labels, ...rest } = data
    const shown = JSON.stringify(rest)
    this.data = data
    if (shown !== this.shown) this.draw()
    this.shown = shown
    this.showLabels(labels)
  }

  draw() {
    const { bar, person } = this.data
    const focused = this.bar.contains(document.activeElement) ? document.activeElement.dataset.at : null
    this.labels = make("div", { class: "ts-labels" })
    const nav = make("nav", { class: "ts-pages", "aria-label": "Pages" }, ...bar.sections.map((item) => this.link(item)))
    const parts = [
      make("span", { class: "ts-brand" }, make("span", { "aria-hidden": "true" }, "⚖"), make("b", {}, "Touchstone")),
      nav,
      this.labels,
      this.who(person),
      make(
        "div",
        { class: "ts-tools" },
        this.tool("search", "Go to … (Ctrl K)", "Ctrl K", () => this.palette()),
        this.tool("help", "Keys and words", "?", () => this.help()),
      ),
    ]
    const tabs = bar.tabs.length > 1
    if (tabs) {
      const inside = bar.tabs.map((item) => this.link(item))
      parts.push(make("nav", { class: "ts-tabs", "aria-label": bar.here }, ...inside))
    }
    this.bar.classList.toggle("ts-with-tabs", tabs)
    this.bar.replaceChildren(...parts)
    for (const row of this.bar.querySelectorAll("nav")) bringIntoSight(row)
    if (focused) this.bar.querySelector(`[data-at="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true })
  }

  link(item, ...content) {
    const at = `${item.page}${item.query ? "?" : ""}`
    const attributes = { href: address(item), "data-at": at, "aria-current": item.current ? "page" : null }
    const link = make("a", attributes, ...(content.length ? content : [item.name]))
    link.addEventListener("click", (event) => {
      if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return
      event.preventDefault()
      for (const other of link.closest("nav")?.querySelectorAll("a") ?? []) other.removeAttribute("aria-current")
      if (link.closest("nav")) link.setAttribute("aria-current", "page")
      this.go(item.page, item.query)
    })
    return link
  }

  who(person) {
    if (person.typed) {
      const says = `You are ${person.shown}. Change your name`
      const act = () => this.rename(person)
      return make("button", { type: "button", class: "ts-who", "data-at": "who", "aria-label": says, title: says, onclick: act }, person.shown)
    }
    if (!person.out) return make("span", { class: "ts-who", title: `You are ${person.shown}` }, person.shown)
    const link = this.link({ page: "sign_out", href: "sign_out" }, person.shown)
    link.className = "ts-who"
    link.title = `You are signed in as ${person.shown}. Sign out`
    return link
  }

  tool(name, says, shown, act) {
    return make("button", { type: "button", "data-at": name, "aria-label": says, title: says, onclick: act }, shown)
  }

  showLabels(labels) {
    const text = JSON.stringify(labels)
    if (this.labels.dataset.shown === text) return
    this.labels.dataset.shown = text
    const focused = this.labels.contains(document.activeElement) ? document.activeElement.dataset.at : null
    this.labels.replaceChildren()
    if (!labels) return
    const says = `The labels at hand: ${labels.sample || "no sample yet"}. Choose others`
    const choose = () => this.samples(labels)
    const given = { type: "button", class: "ts-sample", "data-at": "sample", title: says, "aria-label": says, "aria-haspopup": "dialog", onclick: choose }
    const sample = labels.samples.length > 1 ? make("button", given, make("span", {}, labels.sample)) : make("span", { class: "ts-sample", title: labels.sample }, labels.sample)
    const words = labels.counts.join(" · ") + (labels.disputed && labels.link ? " → settle" : "")
    const chip = labels.link ? this.link(labels.link, words) : make("span", {}, words)
    chip.classList.add("ts-chip")
    chip.classList.toggle("ts-open", labels.disputed)
    this.labels.append(sample, chip)
    if (focused) this.labels.querySelector(`[data-at="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true })
  }

  key(event) {
    const command = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey
    if (!command || event.key.toLowerCase() !== "k") return
    event.preventDefault()
    event.stopImmediatePropagation()
    if (this.open?.open) this.open.close()
    else this.palette()
  }

  dialog(label, kind, ...content) {
    this.open?.close()
    const before = document.activeElement
    const dialog = make("dialog", { role: "dialog", "aria-label": label, class: `ts-dialog ${kind}` }, ...content)
    // The keys of a page are not pressed by what is typed here.
    dialog.addEventListener("keydown", (event) => event.stopPropagation())
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close())
    // The browser tells of a dialog's end a moment after it: another may stand open by then.
    dialog.addEventListener("close", () => {
      dialog.remove()
      if (this.open !== dialog) return
      this.open = null
      if (before?.isConnected) before.focus({ preventScroll: true })
    })
    this.bar.append(dialog)
    this.open = dialog
    dialog.showModal()
    return dialog
  }

  help() {
    const { keys, words, documentation } = this.data.help
    const list = (kind, rows, tag) => {
      const pairs = rows.flatMap(([term, text]) => [make("dt", {}, make(tag, {}, term)), make("dd", {}, text)])
      return make("dl", { class: kind }, ...pairs)
    }
    const close = make("button", { type: "button", "aria-label": "Close", onclick: () => this.open?.close() }, "✕")
    this.dialog(
      "Keys and words",
      "ts-help",
      make("div", { class: "ts-help-head" }, make("h2", {}, "Keys and words"), close),
      list("ts-keys", keys, "kbd"),
      list("ts-words", words, "b"),
      make("p", {}, make("b", {}, "Documentation "), documentation),
    )
  }

  palette() {
    const words = { title: "Go to", placeholder: "Page, detector or trace id", label: "Go to a page, a detector or a trace" }
    this.pick(words, (typed) => offers(this.data, typed), (item) => this.go(item.page, item.query))
  }

  samples(labels) {
    const words = { title: "Labels", placeholder: "Whose labels?", label: "The sample whose labels are at hand" }
    const items = labels.samples.map(({ name, about }) => ({ name, kind: about }))
    const fitting = (typed) => items.filter((item) => fits(`${item.name} ${item.kind}`, typed))
    const at = items.findIndex((item) => item.name === labels.sample)
    this.pick(words, fitting, (item) => this.tell("sample", item.name), at)
  }

  rename(person) {
    const input = make("input", { type: "text", id: "ts-name", value: person.name, maxlength: 100, autocomplete: "off", required: true })
    const form = make(
      "form",
      { method: "dialog" },
      make("label", { for: "ts-name" }, "Your name"),
      input,
      make("p", {}, "Your verdicts are kept under this name."),
      make("button", { type: "submit" }, "Use this name"),
    )
    form.addEventListener("submit", () => this.tell("name", input.value))
    this.dialog("Your name", "ts-name", form)
    input.select()
  }

  // A list in which typing narrows and an arrow key marks. `offered` gives the items that fit what is typed.
  pick(words, offered, take, first = 0) {
    const list = make("ul", { role: "listbox", id: "ts-options", "aria-label": words.title })
    const input = make("input", {
      type: "text",
      role: "combobox",
      placeholder: words.placeholder,
      "aria-label": words.label,
      "aria-expanded": "true",
      "aria-controls": "ts-options",
      "aria-autocomplete": "list",
      autocomplete: "off",
      spellcheck: "false",
    })
    let place = 0
    const options = () => [...list.querySelectorAll("[role=option]")]
    const choose = (item) => {
      this.open?.close()
      take(item)
    }
    const mark = (next) => {
      const all = options()
      place = all.length ? (next + all.length) % all.length : 0
      all.forEach((option, n) => option.setAttribute("aria-selected", String(n === place)))
      all[place]?.scrollIntoView({ block: "nearest" })
      if (all[place]) input.setAttribute("aria-activedescendant", all[place].id)
      else input.removeAttribute("aria-activedescendant")
    }
    const fill = () => {
      const items = offered(input.value)
      list.replaceChildren(
        ...items.map((item, n) => {
          const attributes = { role: "option", id: `ts-option-${n}`, onclick: () => choose(item) }
          return make("li", attributes, make("span", {}, item.name), make("small", {}, item.kind))
        }),
      )
      if (!items.length) list.append(make("li", { class: "ts-none", role: "presentation" }, "Nothing is called that."))
      list.querySelectorAll("[role=option]").forEach((option, n) => (option.item = items[n]))
      mark(input.value ? 0 : Math.max(first, 0))
    }
    input.addEventListener("input", fill)
    input.addEventListener("keydown", (event) => {
      if (event.isComposing) return
      if (event.key === "ArrowDown") mark(place + 1)
      else if (event.key === "ArrowUp") mark(place - 1)
      else if (event.key === "Enter") options()[place] && choose(options()[place].item)
      else return
      event.preventDefault()
    })
    this.dialog(words.title, "ts-palette", input, list)
    fill()
    input.focus()
  }
}

function fits(text, typed) {
  return typed.toLowerCase().split(/\s+/).every((word) => text.toLowerCase().includes(word))
}

const MOST = 8 // of a kind

// What fits the words that are typed: pages first, then detectors, then traces; any other text may be a trace's id.
export function offers({ bar, palette }, typed) {
  const id = typed.trim()
  const pages = bar.all.filter((item) => fits(item.name, id)).map((item) => ({ ...item, kind: "page" }))
  const detectors = palette.detectors
    .filter((item) => fits(`${item.name} ${item.id} ${item.where}`, id))
    .map((item) => ({ ...item, kind: item.where, query: { detector: item.id } }))
  const at = (trace) => ({ ...palette.trace, name: trace, kind: "trace", query: { trace } })
  const traces = id ? palette.traces.filter((trace) => fits(trace, id)).map(at) : []
  if (palette.trace && id && !palette.traces.includes(id)) traces.push({ ...at(id), name: `Open the trace ${id}` })
  const shown = id ? MOST : Infinity
  return [...pages.slice(0, shown), ...detectors.slice(0, id ? MOST : 0), ...traces.slice(-MOST)]
}

function address(item) {
  return item.query ? `${item.href}?${new URLSearchParams(item.query)}` : item.href
}

function bringIntoSight(row) {
  const current = row.querySelector("[aria-current]")
  if (current) row.scrollLeft = current.offsetLeft - (row.clientWidth - current.offsetWidth) / 2
}
