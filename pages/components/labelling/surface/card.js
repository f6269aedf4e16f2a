// A trace: question and answer on the left, sources on the right. Made ahead of the press that shows it.

import { block, chip, element } from "./dom.js"
import { length, pieces, toPoints } from "./text.js"

/** @returns {{node: HTMLElement, trace: object, answer: HTMLElement | null}} */
export function card(trace) {
  const node = element("article", "card")
  node.dataset.trace = trace.id
  const left = pane("answer-pane", "Question and answer")
  if (trace.question.length) left.append(element("h2", "", "Question"), block(trace.question, "text question"))
  const head = element("h2", "", "Answer")
  const place = element("span", "place")
  head.append(" ", place)
  const answer = element("div", trace.code ? "text answer code" : "text answer")
  answer.dir = "auto"
  if (trace.voices?.length) left.append(voicesNode(trace.voices))
  left.append(head, answer)
  const right = pane("sources-pane", "Sources")
  right.append(element("h2", "", trace.counts ? `Sources · ${trace.counts}` : "Sources"))
  for (const source of trace.sources) right.append(sourceNode(source))
  if (trace.context) right.append(block(trace.context))
  if (!trace.sources.length && !trace.context) right.append(element("p", "quiet", "No sources were logged with this trace."))
  for (const fold of trace.more) right.append(foldNode(fold))
  const facts = element("footer", "facts")
  for (const fact of trace.facts) facts.append(block(fact, "fact"))
  right.append(facts)
  node.append(left, right)
  const made = { node, trace, answer, place, left, right }
  if (trace.purged) {
    answer.append(block(trace.answer))
  } else draw(made, [], null)
  return made
}

/** Draws the answer anew with these spans and the sentence at hand. */
export function draw(made, spans, sentence, kindName = (kind) => kind) {
  const { trace, answer } = made
  if (trace.purged) return
  const marks = trace.cites.map(([start, end, numbers]) => ({ start, end, numbers }))
  marks.push(...spans.map((span) => ({ ...span, span })))
  for (const voice of trace.voices ?? []) marks.push(...voice.spans.map(([start, end]) => ({ start, end, voice })))
  if (sentence !== null) {
    const [start, end] = trace.sentences[sentence]
    marks.push({ start, end, sentence: true })
  }
  const parts = pieces(trace.answer, marks, trace.breaks).map((piece) => {
    if (piece.inserted !== undefined) {
      const made = element("span", "inserted", piece.inserted)
      made.dataset.inserted = "yes"
      return made
    }
    const covering = piece.marks
    const cites = covering.find((mark) => mark.numbers)
    const span = covering.find((mark) => mark.span)
    const voices = covering.filter((mark) => mark.voice).map((mark) => mark.voice.who)
    const names = [cites && "cite", span && "span", voices.length && "voiced", covering.some((mark) => mark.sentence) && "sentence"].filter(Boolean)
    const part = element("span", names.join(" "), piece.text)
    if (piece.name !== undefined) part.append(chip(piece.name, piece.count))
    part.dataset.start = piece.start
    part.dataset.end = piece.end
    if (cites) part.dataset.cites = JSON.stringify(cites.numbers)
    if (voices.length) part.title = `marked by ${voices.join(", ")}`
    if (span) {
      part.title = span.kind ? `${kindName(span.kind)}: click to take the mark away` : "marked: click to take it away"
      part.dataset.span = JSON.stringify([span.start, span.end])
    }
    return part
  })
  if (trace.left_out) parts.push(element("p", "quiet", `… ${trace.left_out} more characters are not shown.`))
  answer.replaceChildren(...parts)
  made.place.textContent = sentence === null ? "" : `· sentence ${sentence + 1} of ${trace.sentences.length}`
  if (sentence !== null) within(made.left, answer.querySelector(".sentence"))
}

/** What is selected in the answer, in code points; null where it is nothing, or elsewhere. */
export function selected(made, selection) {
  if (!selection || selection.isCollapsed || !selection.rangeCount) return null
  const range = selection.getRangeAt(0)
  if (!range.intersectsNode(made.answer)) return null
  const whole = document.createRange()
  whole.selectNodeContents(made.answer)
  const before = range.compareBoundaryPoints(Range.START_TO_START, whole) < 0
  const after = range.compareBoundaryPoints(Range.END_TO_END, whole) > 0
  const start = before ? 0 : point(made, range.startContainer, range.startOffset)
  const end = after ? length(made.trace.answer) : point(made, range.endContainer, range.endOffset)
  return start < end ? { start, end } : null
}

function point(made, node, offset) {
  if (node.nodeType === Node.TEXT_NODE) {
    const part = node.parentElement.closest("[data-start]")
    if (!part) return edge(node.parentElement)
    const [start, end] = [Number(part.dataset.start), Number(part.dataset.end)]
    if (node.parentElement !== part) return offset ? end : start // a chip counts as a whole
    return start + toPoints(node.data, offset)
  }
  const child = node.childNodes[offset]
  if (child) return edge(child.nodeType === Node.TEXT_NODE ? child.parentElement : child)
  const last = node.closest?.("[data-end]")
  return last ? Number(last.dataset.end) : length(made.trace.answer)
}

// Where an element begins, or the next one that is of the text.
function edge(node) {
  for (let part = node.closest("[data-start]") ?? node; part; part = part.nextElementSibling) {
    if (part.dataset.start) return Number(part.dataset.start)
  }
  return 0
}

/** Shows the sources that a citation names. */
export function point_to(made, numbers) {
  made.right.querySelectorAll(".pointed").forEach((node) => node.classList.remove("pointed"))
  const hits = [...made.right.querySelectorAll(".source")].filter((node) => numbers.includes(node.dataset.number))
  hits.forEach((node) => node.classList.add("pointed"))
  if (hits[0]) within(made.right, hits[0])
}

function within(pane, node) {
  if (!node) return
  const [outer, inner] = [pane.getBoundingClientRect(), node.getBoundingClientRect()]
  if (inner.top < outer.top + 40 || inner.bottom > outer.bottom - 20) pane.scrollTop += inner.top - outer.top - 60
}

function pane(className, title) {
  const made = element("section", `pane ${className}`)
  made.tabIndex = 0
  made.setAttribute("aria-label", title)
  return made
}

function sourceNode(source) {
  const made = element("section", source.cited ? "source" : "source uncited")
  made.dataset.number = source.number
  const head = element("header", "source-head")
  head.append(element("span", "number", `[${source.shown}]`), block(source.title, "title"))
  made.append(head, block(source.text))
  return made
}

// What each labeller said, side by side.
function voicesNode(voices) {
  const list = element("ul", "voices")
  list.setAttribute("aria-label", "What each labeller said")
  for (const { who, verdict, kinds, note, when } of voices) {
    const made = element("li", `voice ${verdict}`)
    made.append(element("strong", "", verdict), " ", element("span", "who", who))
    const about = [...kinds, when].filter(Boolean).join(" · ")
    if (about) made.append(element("div", "quiet", about))
    if (note) made.append(element("div", "said", note))
    list.append(made)
  }
  return list
}

function foldNode(fold) {
  const made = element("details", "fold")
  made.append(element("summary", "", fold.title))
  for (const item of fold.items) {
    const row = element("div", "row")
    if (item.name) row.append(block(item.name, "name"))
    row.append(block(item.text, fold.code ? "text code" : "text"))
    made.append(row)
  }
  return made
}

