// Text reaches the page through textContent alone. Nothing here reads HTML.

function element(name, className, text) {
  const made = document.createElement(name)
  if (className) made.className = className
  if (text !== undefined && text !== null) made.textContent = text
  return made
}

function fill(parent, segments) {
  for (const segment of segments) {
    if (segment.first) {
      for (const number of segment.first) {
        const badge = element("sup", "badge", String(number))
        badge.dataset.evidence = number
        parent.append(badge)
      }
    }
    if (segment.u !== undefined) {
      const chip = element("span", "chip", segment.n > 1 ? `${segment.u} ×${segment.n}` : segment.u)
      chip.title = "a character that acts without being seen"
      parent.append(chip)
    } else if (!segment.k) {
      parent.append(segment.t)
    } else {
      const part = element("span", segment.k.join(" "), segment.t)
      if (segment.cites) {
        part.dataset.cites = JSON.stringify(segment.cites)
        part.title = `cites ${segment.cites.join(", ")}`
      }
      if (segment.heat) part.title = segment.heat.join(", ")
      if (segment.kinds) part.title = segment.kinds.join(", ")
      if (segment.evidence) part.dataset.evidence = segment.evidence.join(" ")
      parent.append(part)
    }
  }
  return parent
}

function text(segments, code) {
  const block = element("div", code ? "text code" : "text")
  block.dir = "auto"
  return fill(block, segments)
}

function pane(className, title, aside) {
  const made = element("div", `pane ${className}`)
  made.tabIndex = 0
  made.setAttribute("role", "region")
  made.setAttribute("aria-label", title)
  const head = element("header", "head")
  head.append(element("h2", "", title))
  if (aside) head.append(aside)
  made.append(head)
  return made
}

function legend(entries) {
  const list = element("span", "legend")
  for (const entry of entries) {
    const item = element("span", "entry")
    item.append(element("i", `swatch ${entry.kind}`), entry.text)
    list.append(item)
  }
  return list
}

function remarks(entries) {
  const list = element("ol", "remarks")
  for (const entry of entries) {
    const item = element("li", "remark")
    item.dataset.evidence = entry.number
    item.append(element("span", "badge", String(entry.number)))
    const words = element("span", "words")
    words.dir = "auto"
    item.append(fill(words, entry.text))
    if (entry.value !== null) item.append(element("span", "value", entry.value))
    list.append(item)
  }
  return list
}

function source(entry) {
  const section = element("section", entry.cited ? "source" : "source uncited")
  section.dataset.number = entry.number
  const head = element("header", "source-head")
  head.append(element("span", "number", `[${entry.shown}]`))
  const title = element("span", "title")
  title.dir = "auto"
  head.append(fill(title, entry.title))
  const tags = [entry.score, entry.cited ? "cited" : null].filter(Boolean)
  if (tags.length) head.append(element("span", "tag", tags.join(" · ")))
  section.append(head, text(entry.text))
  return section
}

function sourcesPane(data) {
  if (data.context) {
    const made = pane("sources", "Context")
    made.append(text(data.context))
    return made
  }
  const made = pane("sources", "Sources", element("span", "aside", data.counts))
  for (const entry of data.sources) made.append(source(entry))
  if (!data.sources.length) made.append(element("p", "nothing", "This trace was logged without sources."))
  return made
}

function answerPane(data) {
  const made = pane("answer", "Answer", legend(data.legend))
  made.append(text(data.answer, data.code))
  if (!data.answer.length) made.append(element("p", "nothing", "The answer is empty."))
  if (data.remarks.length) made.append(remarks(data.remarks))
  return made
}

function fold(entry) {
  const made = element("details", "fold")
  made.append(element("summary", "", entry.title))
  const body = element("div", "body")
  for (const item of entry.items) {
    const row = element("div", item.name ? "row" : "item")
    if (item.name) row.append(fill(element("span", "name"), item.name))
    row.append(text(item.text, entry.code))
    body.append(row)
  }
  made.append(body)
  return made
}

function foot(data) {
  const made = element("footer", "foot")
  const facts = element("span", "facts")
  data.facts.forEach((fact, place) => {
    if (place) facts.append(element("span", "dot", " · "))
    facts.append(fill(element("span", "fact"), fact))
  })
  made.append(facts)
  for (const entry of data.more) made.append(fold(entry))
  return made
}

function build(data, height) {
  const card = element("article", "card")
  card.style.height = height
  const question = element("div", "question")
  question.tabIndex = 0
  question.setAttribute("role", "region")
  question.setAttribute("aria-label", "Question")
  question.append(element("h2", "", "Question"))
  question.append(data.question.length ? text(data.question) : element("p", "nothing", "No question was logged."))
  const panes = element("div", "panes")
  panes.append(answerPane(data), sourcesPane(data))
  card.append(question, panes, foot(data))
  card.dataset.trace = data.id
  card.addEventListener("click", (event) => onClick(card, event))
  return card
}

// One item of a list: a line of ours, a card, or one that is folded under its heading and its question.
function box(item, height) {
  if (item.line) return element("div", "item line", item.line)
  const card = build(item, height)
  if (!item.heading) {
    const made = element("section", "item")
    made.append(card)
    return made
  }
  const made = element("details", "item")
  made.name = "list" // one of them is open at a time
  const head = element("summary", "heading")
  head.append(element("strong", "", item.heading.figure), element("span", item.heading.tone, item.heading.word))
  head.append(element("p", "", item.question.length ? card.querySelector(".question").lastChild.textContent : item.id))
  made.append(head, card)
  return made
}

// ---------------------------------------------------------------------------------------------- what a click does

function within(pane, target) {
  pane.scrollTo({ top: target.offsetTop - pane.offsetTop - 56 })
}

function point(card, test) {
  card.querySelectorAll(".pointed").forEach((node) => node.classList.remove("pointed"))
  for (const pane of card.querySelectorAll(".pane")) {
    const found = [...pane.querySelectorAll("[data-evidence], .source")].filter(test)
    found.forEach((node) => node.classList.add("pointed"))
    const first = found.find((node) => !node.closest(".remarks"))
    if (first) within(pane, first)
  }
}

function onClick(card, event) {
  const hit = event.composedPath().find((node) => node.dataset && (node.dataset.cites || node.dataset.evidence))
  if (!hit) return
  if (hit.dataset.evidence) {
    const wanted = hit.dataset.evidence.split(" ")
    point(card, (node) => (node.dataset.evidence || "").split(" ").some((one) => wanted.includes(one)))
  } else {
    const wanted = JSON.parse(hit.dataset.cites)
    point(card, (node) => node.classList.contains("source") && wanted.includes(node.dataset.number))
  }
}

function onKey(card, event) {
  const step = { ArrowDown: 80, ArrowUp: -80, PageDown: 400, PageUp: -400 }[event.key]
  const typing = event.composedPath().some((node) => ["INPUT", "TEXTAREA", "SELECT"].includes(node.tagName))
  if (!step || typing || event.ctrlKey || event.metaKey || event.altKey) return
  if (document.querySelector("[role=dialog], [role=listbox]")) return
  const pane = card.querySelector(event.shiftKey ? ".pane.answer" : ".pane.sources")
  if (pane.scrollHeight <= pane.clientHeight) return
  pane.scrollBy({ top: step })
  event.preventDefault()
}

// --------------------------------------------------------------------------------------------------- what is shown

const parts = (item) => [...item.querySelectorAll(".pane, .question")]
const traceOf = (item) => item.querySelector(".card")?.dataset.trace

// What each item on the page was made from.
const sources = new WeakMap()

// What stays the same stands; a card that changes but is of the same trace stays scrolled as it was.
function show(parent, { items, height }) {
  const before = [...parent.querySelectorAll(".item")]
  const left = new Map(before.map((item) => [sources.get(item), item]))
  const after = items.map((item) => {
    const source = JSON.stringify([item, height])
    const made = left.get(source) ?? box(item, height)
    left.delete(source)
    sources.set(made, source)
    return made
  })
  const scrolled = new Map([...left.values()].map((item) => [traceOf(item), parts(item).map((node) => node.scrollTop)]))
  for (const item of left.values()) item.remove()
  let place = parent.querySelector(".item")
  for (const item of after) {
    if (item === place) {
      place = place.nextElementSibling
      continue
    }
    parent.insertBefore(item, place)
    const tops = traceOf(item) === undefined ? undefined : scrolled.get(traceOf(item))
    if (tops) parts(item).forEach((node, i) => tops[i] && (node.scrollTop = tops[i]))
  }
}

// Streamlit calls us again with new data without cleaning up first.
const cleanups = new WeakMap()

export default function (component) {
  const { data, parentElement } = component
  cleanups.get(parentElement)?.()
  show(parentElement, data)
  if (!data.scrollKeys) return undefined
  const listener = (event) => onKey(parentElement.querySelector(".card"), event)
  const cleanup = () => document.removeEventListener("keydown", listener)
  document.addEventListener("keydown", listener)
  cleanups.set(parentElement, cleanup)
  return cleanup
}
