import { inSight, isTaken, reveal, rowAfter } from "./places.mjs"

const ROW = 80 // pixels, as in list.css
const MARGIN = 8
const WINDOW = 100
const MOST_AGAIN = 500
const REST = 120 // ms that a row stays chosen before its trace is opened: a held key opens the last one only
const WORDS = { hallucinated: "✗ Hallucinated", clean: "✓ Clean", unsure: "? Unsure", disputed: "⇄ Disputed" }

const lists = new WeakMap()

export default function ({ data, parentElement, setTriggerValue }) {
  const place = parentElement.querySelector(".traces")
  if (!lists.has(place)) lists.set(place, new List(place))
  const list = lists.get(place)
  list.tell(data, (id) => setTriggerValue("opened", id))
  return () => {
    list.leave()
    lists.delete(place)
  }
}

function element(tag, name, text) {
  const made = document.createElement(tag)
  if (name) made.className = name
  if (text !== undefined) made.textContent = text
  return made
}

class List {
  constructor(place) {
    this.rows = []
    this.at = -1
    this.turn = 0
    this.sent = new Set() // what was opened here, and the page may answer later
    this.head = element("div", "head")
    this.box = element("div", "box")
    this.box.tabIndex = 0
    this.box.setAttribute("role", "listbox")
    this.box.setAttribute("aria-label", "Traces")
    this.sheet = element("div", "sheet")
    this.box.append(this.sheet)
    this.told = element("div", "told")
    this.told.setAttribute("aria-live", "polite")
    place.replaceChildren(this.head, this.box, this.told)
    this.box.addEventListener("scroll", () => this.draw(), { passive: true })
    this.sheet.addEventListener("click", (event) => {
      const row = event.target.closest?.(".row")
      if (row) this.choose(Number(row.dataset.at), 0)
    })
    this.pressed = (event) => this.press(event)
    document.addEventListener("keydown", this.pressed)
    this.resized = new ResizeObserver(() => this.draw())
    this.resized.observe(this.box)
  }

  leave() {
    this.turn += 1
    clearTimeout(this.timer)
    document.removeEventListener("keydown", this.pressed)
    this.resized.disconnect()
  }

  tell(data, open) {
    const before = this.data
    this.data = data
    this.open = open
    this.box.style.height = data.height
    const view = JSON.stringify(data.view)
    if (!before || view !== this.view) {
      this.view = view
      this.wanted = before ? null : data.opened // the address opens a trace, another view its first
      this.rows = []
      this.at = -1
      this.box.scrollTop = 0
      this.begin(WINDOW)
    } else if (data.revision !== before.revision) {
      this.wanted = this.rows[this.at]?.id ?? null
      this.begin(Math.min(MOST_AGAIN, Math.max(WINDOW, this.rows.length)))
    } else if (data.opened !== before.opened && !this.sent.has(data.opened)) {
      this.at = this.rows.findIndex((row) => row.id === data.opened) // by Back, or a link
      this.draw()
    }
    if (data.opened === this.rows[this.at]?.id) this.sent.clear()
  }

  async ask(limit, after) {
    const turn = this.turn
    const { address, typed, view } = this.data
    const answer = await fetch(new URL(address, document.baseURI), {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ typed, view, limit, after }),
    })
    const content = await answer.json()
    if (!answer.ok) throw new Error(content.error ?? "The server did not answer.")
    return turn === this.turn ? content : null
  }

  async begin(limit) {
    this.turn += 1
    this.asking = true
    try {
      const content = await this.ask(limit, null)
      if (!content) return
      this.asking = false
      this.rows = content.rows
      this.after = content.after
      this.total = content.total
      this.words = content.words
      this.at = this.rows.findIndex((row) => row.id === this.wanted)
      this.label()
      if (this.wanted === null && this.rows.length) this.choose(0, 0)
      else if (this.at >= 0) this.box.scrollTop = reveal(this.at, this.box.scrollTop, this.box.clientHeight, ROW)
      this.draw()
    } catch (error) {
      this.fail(error, () => this.begin(limit))
    }
  }

  async more() {
    if (this.asking || !this.after) return
    this.asking = true
    try {
      const content = await this.ask(WINDOW, this.after)
      if (!content) return
      this.asking = false
      this.rows.push(...content.rows)
      this.after = content.after
      this.draw()
    } catch (error) {
      this.fail(error, () => {
        this.asking = false
        this.more()
      })
    }
  }

  fail(error, again) {
    const line = element("div", "failed", error.message)
    const button = element("button", "", "Try again")
    button.addEventListener("click", () => {
      this.label()
      again()
    })
    line.append(button)
    this.head.replaceChildren(line)
  }

  label() {
    const keys = element("span", "keys")
    keys.append(element("kbd", "", "J"), element("kbd", "", "K"))
    keys.title = "J and K, or the arrow keys, open the next and the previous trace"
    this.head.replaceChildren(element("span", "many", this.words), keys)
    if (this.data.score) this.head.append(element("span", "score", this.data.score))
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
    const pressed = event.composedPath()[0]
    const mine = pressed === this.box || this.box.contains(pressed)
    // Elsewhere on the page only letters: arrow keys scroll there. A labelling surface has J and K for itself.
    if (!mine && !["j", "J", "k", "K"].includes(event.key)) return
    if (!mine && (isTaken(pressed.tagName, pressed.type, pressed.isContentEditable) || this.isLabelling())) return
    const next = rowAfter(event.key, this.at, this.rows.length, Math.floor(this.box.clientHeight / ROW))
    if (next === null) return
    event.preventDefault()
    this.choose(next, REST)
  }

  isLabelling() {
    return document.querySelector(".touchstone-labelling, dialog[open], [role=dialog]") !== null
  }

  choose(at, rest) {
    const isNew = at !== this.at
    this.at = at
    this.box.scrollTop = reveal(at, this.box.scrollTop, this.box.clientHeight, ROW)
    this.draw()
    if (!isNew && this.rows[at].id === this.data.opened) return
    this.told.textContent = `Trace ${at + 1} of ${this.words}`
    clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      this.timer = null
      this.sent.add(this.rows[this.at].id)
      this.open(this.rows[this.at].id)
    }, rest)
  }

  draw() {
    const [first, last] = inSight(this.box.scrollTop, this.box.clientHeight, this.rows.length, ROW, MARGIN)
    this.sheet.style.height = `${this.rows.length * ROW}px`
    const drawn = []
    for (let at = first; at < last; at++) drawn.push(this.row(at))
    this.sheet.replaceChildren(...drawn)
    const active = this.at >= first && this.at < last ? `trace-row-${this.at}` : ""
    if (active) this.box.setAttribute("aria-activedescendant", active)
    else this.box.removeAttribute("aria-activedescendant")
    if (!this.rows.length && !this.asking) {
      this.sheet.replaceChildren(element("p", "none", "No trace matches. Take a filter away, or press Clear."))
      this.sheet.style.height = ""
    }
    if (last >= this.rows.length - WINDOW / 4) this.more()
  }

  row(at) {
    const trace = this.rows[at]
    const row = element("div", "row")
    row.id = `trace-row-${at}`
    row.dataset.at = at
    row.style.top = `${at * ROW}px`
    row.setAttribute("role", "option")
    row.setAttribute("aria-selected", at === this.at)
    row.setAttribute("aria-posinset", at + 1)
    row.setAttribute("aria-setsize", this.after ? -1 : this.rows.length)
    const top = element("div", "top")
    top.append(element("span", "question", trace.question || trace.answer), element("span", "score", trace.score))
    const facts = element("div", "facts")
    if (trace.gold) facts.append(element("span", `gold ${trace.gold in WORDS ? trace.gold : ""}`, WORDS[trace.gold] ?? trace.gold))
    facts.append(element("span", "model", trace.model), element("span", "when", trace.when))
    row.append(top, element("div", "answer", trace.question ? trace.answer : ""), facts)
    return row
  }
}
