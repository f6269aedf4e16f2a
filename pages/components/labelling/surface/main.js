// The labelling surface on a page: draws what the session holds, and turns keys and clicks into what it does.

import * as cards from "./card.js"
import * as desks from "./desk.js"
import { button, element } from "./dom.js"
import { mark, toggleKind, write } from "./draft.js"
import { Finder } from "./finder.js"
import { meaning } from "./keys.js"
import * as notices from "./notices.js"
import { inWords as paceInWords, pace } from "./pace.js"
import { inWords, recent } from "./queue.js"
import { session as sessionOf } from "./session.js"
import * as reading from "./reading.js"
import * as sheets from "./sheets.js"
import { wordsOf } from "./words.js"
import { step, toggled, trimmed } from "./text.js"

const VERDICTS = [["clean", "Clean", "A"], ["hallucinated", "Hallucinated", "X"], ["unsure", "Unsure", "U"]]
const WORDS = { clean: "Clean", hallucinated: "Hallucinated", unsure: "Unsure", skip: "Skipped" }
const KINDS_AFTER = 3000 // milliseconds in which a digit still goes to the answer just given

/** Puts the surface into a parent. Gives what takes it away again. */
export function mount(parent, about) {
  const surface = new Surface(parent, about)
  return () => surface.leave()
}

class Surface {
  constructor(parent, about) {
    this.about = about
    this.session = sessionOf(about)
    this.words = wordsOf(about.kind)
    this.made = new Map()
    this.sentence = null
    this.shown = null
    this.lastAnswer = -Infinity
    this.root = element("div", about.kind === "sample" ? "touchstone-surface whole" : "touchstone-surface part")
    this.#build()
    parent.replaceChildren(this.root)
    this.#fit()
    reading.apply(this.root)
    this.stop = new AbortController()
    const { signal } = this.stop
    window.addEventListener("keydown", (event) => this.#key(event), { capture: true, signal })
    document.addEventListener("visibilitychange", () => this.session.inSight(!document.hidden), { signal })
    window.addEventListener("resize", () => this.#fit(), { signal })
    window.addEventListener("online", () => this.session.retry(), { signal })
    for (const name of ["pointermove", "wheel"]) {
      this.root.addEventListener(name, () => this.session.alive(), { signal, passive: true })
    }
    this.session.listener = () => this.#later()
    this.session.ready.then(() => {
      this.session.resume()
      this.#draw()
    })
    this.#draw()
  }

  leave() {
    this.stop.abort()
    if (this.session.listener) this.session.listener = () => {}
  }

  // ------------------------------------------------------------------------------------------------- what stands

  #build() {
    const bar = element("header", "bar")
    this.count = element("span", "count")
    this.progress = element("progress", "progress")
    this.progress.setAttribute("aria-label", this.words.progress)
    this.pace = element("span", "quiet pace")
    this.state = element("span", "state")
    this.strip = element("ol", "strip")
    this.strip.setAttribute("aria-label", "The last ten answers")
    this.flagged = button("plain flag", "Flag", "F", () => this.#flag())
    this.flagged.setAttribute("aria-pressed", "false")
    const tools = element("span", "tools")
    tools.setAttribute("role", "toolbar")
    tools.setAttribute("aria-label", "Reading and help")
    tools.append(
      button("plain smaller", "A−", "", () => reading.resize(this.root, -1)),
      button("plain larger", "A+", "", () => reading.resize(this.root, 1)),
      button("plain undo", "Undo", "Z", () => this.#undo()),
      this.flagged,
      button("plain guide", "Guide", "G", () => sheets.guide(this.sheet, this.about.guide)),
      button("plain help", "Keys", "?", () => sheets.keys(this.sheet)),
    )
    bar.append(element("strong", "sample", this.about.title), this.progress, this.count, this.pace, this.strip, this.state, tools)
    this.alerts = element("div", "alerts")
    this.place = element("div", "stage")
    this.finder = new Finder(() => this.#made()?.right)
    const foot = element("footer", "verdicts")
    const row = element("div", "row")
    this.buttons = new Map()
    for (const [verdict, text, key] of VERDICTS) {
      const made = button(`verdict ${verdict}`, text, key, () => this.#answer(verdict))
      this.buttons.set(verdict, made)
      row.append(made)
    }
    this.skip = button("plain skip", "Skip", "Space", () => this.#answer("skip"))
    row.append(this.skip, button("plain back", "Back", "⌫", () => this.session.back()))
    const aside = element("div", "row aside")
    this.kinds = this.about.guide.kinds.map((kind, place) => {
      const made = button("kind", kind.name, String(place + 1), () => this.#kind(place))
      made.setAttribute("aria-pressed", "false")
      return made
    })
    this.note = element("input", "note")
    this.note.placeholder = `${this.words.note} (optional)`
    this.note.setAttribute("aria-label", this.words.note)
    this.note.maxLength = 2000
    this.note.addEventListener("input", () => this.session.draft && this.session.edit(write(this.session.draft, this.note.value)))
    aside.append(...this.kinds, this.note)
    foot.append(row, aside)
    this.toast = element("div", "toast")
    this.toast.setAttribute("role", "status")
    this.live = element("div", "unseen")
    this.live.setAttribute("aria-live", "polite")
    this.sheet = element("dialog", "sheet")
    this.foot = foot
    this.root.append(bar, this.alerts, this.finder.form, this.place, foot, this.toast, this.live, this.sheet)
  }

  // Under what else the page shows, the verdicts stay on the screen.
  #fit() {
    const page = this.root.closest("[data-testid=stMain]") ?? document.scrollingElement
    this.root.style.setProperty("--top", `${Math.round(this.root.getBoundingClientRect().top + page.scrollTop)}px`)
  }

  // ------------------------------------------------------------------------------------------------- what is drawn

  #later() {
    if (this.waiting) return
    this.waiting = true
    requestAnimationFrame(() => {
      this.waiting = false
      this.#draw()
    })
  }

  #draw() {
    const { desk, queue, draft } = this.session
    const trace = desk.current
    this.root.dataset.open = trace ? "yes" : "no"
    if (trace !== this.shown) this.#show(trace)
    if (!trace) this.#showNothing()
    const size = desk.place?.size ?? 0
    const labelled = Math.min(size, this.session.labelled)
    this.progress.hidden = size < 2
    this.progress.max = size || 1
    this.progress.value = labelled
    const count = desk.place?.says ?? [`${labelled} / ${size}`, desk.place?.hint].filter(Boolean).join(" · ")
    this.count.textContent = desk.place ? count : ""
    this.pace.textContent = paceInWords(pace(this.session.times) ?? desk.place?.seconds_each, size - labelled)
    this.state.textContent = `${queue.waiting.length ? "○" : "●"} ${inWords(queue)}`
    this.state.dataset.waiting = String(queue.waiting.length)
    const chips = recent(queue).map((answer) => {
      const made = element("li", `mark ${answer.verdict}`)
      made.title = `${WORDS[answer.verdict]}${answer.standing === undefined ? ", waiting to be sent" : ""}`
      return made
    })
    this.strip.replaceChildren(...chips)
    if (draft) {
      for (const [verdict, made] of this.buttons) made.setAttribute("aria-pressed", String(draft.verdict === verdict))
      const kinds = new Set([...draft.kinds, ...draft.spans.map((span) => span.kind)])
      this.kinds.forEach((made, place) => made.setAttribute("aria-pressed", String(kinds.has(this.about.guide.kinds[place].key))))
      if (document.activeElement !== this.note && this.note.value !== draft.note) this.note.value = draft.note
    }
    this.flagged.setAttribute("aria-pressed", String((trace?.flag ?? null) !== null))
    this.skip.firstChild.textContent = trace?.standing ? "Leave it" : "Skip"
    this.#drawAnswer()
    this.#drawAlerts()
    this.#prepare()
  }

  #show(trace) {
    this.shown = trace
    this.sentence = null
    this.drawn = null
    if (!trace) return
    const made = this.#card(trace)
    this.place.replaceChildren(made.node)
    made.left.scrollTop = made.scrolled ?? 0
    const { desk } = this.session
    this.live.textContent = `Trace ${desks.number(desk)} of ${desk.place?.size ?? 0}`
    this.finder.renew()
  }

  #made = () => this.shown && this.made.get(this.shown.pk)

  #card(trace) {
    let made = this.made.get(trace.pk)
    if (!made) {
      made = cards.card(trace)
      made.answer.addEventListener("pointerup", () => setTimeout(() => this.#select(made)))
      reading.follow(this.root, made.left)
      made.node.addEventListener("click", (event) => this.#click(made, event))
      this.made.set(trace.pk, made)
    }
    return made
  }

  #prepare() {
    const { current, coming, passed, returning } = this.session.desk
    const near = [current, ...returning, ...coming.slice(0, 6), ...passed.slice(-10)].filter(Boolean)
    const keys = new Set(near.map((trace) => trace.pk))
    for (const pk of this.made.keys()) if (!keys.has(pk)) this.made.delete(pk)
    const missing = near.find((trace) => !this.made.has(trace.pk))
    if (missing && !this.preparing) {
      this.preparing = true
      setTimeout(() => {
        this.preparing = false
        this.#card(missing)
        this.#prepare()
      })
    }
  }

  #drawAnswer() {
    const { draft } = this.session
    const made = this.#made()
    if (!made || !draft) return
    const state = JSON.stringify([draft.spans, this.sentence])
    if (this.drawn === state || (this.drawn === null && state === "[[],null]")) return
    this.drawn = state
    cards.draw(made, draft.spans, this.sentence, (key) => this.#kindName(key))
  }

  #kindName = (key) => this.about.guide.kinds.find((kind) => kind.key === key)?.name ?? key

  #showNothing() {
    const box = notices.nothing(this.session, this.words)
    if (notices.isOver(this.session) && !this.told) {
      this.told = true
      this.about.go("over")
    }
    if (this.place.textContent !== box.textContent || this.place.querySelector("article")) this.place.replaceChildren(box)
  }

  #drawAlerts() {
    const state = notices.stateOf(this.session)
    if (state === this.alerted) return
    this.alerted = state
    this.alerts.replaceChildren(...notices.alerts(this.session, this.words, () => this.#draw()))
  }

  #say(words) {
    this.toast.textContent = words
    this.toast.dataset.shown = "yes"
    clearTimeout(this.fading)
    this.fading = setTimeout(() => (this.toast.dataset.shown = "no"), KINDS_AFTER)
  }

  // -------------------------------------------------------------------------------------------------- what is done

  #key(event) {
    const path = event.composedPath()
    const inside = path.includes(this.root)
    const field = path.some((node) => ["INPUT", "TEXTAREA", "SELECT"].includes(node.tagName) || node.isContentEditable)
    const other = document.querySelector("[role=dialog], [role=listbox], [data-testid=stPopoverBody]")
    if (field && (!inside || this.sheet.contains(path[0]))) return
    if (other && !this.root.contains(other)) return
    const onButton = path.some((node) => ["BUTTON", "A", "SUMMARY"].includes(node.tagName))
    const action = meaning(event, { typing: field, onButton, open: this.sheet.open })
    if (!action) return
    this.session.alive()
    if (action.do !== "leave" || field || this.sheet.open) {
      event.preventDefault()
      event.stopImmediatePropagation()
    }
    this.#act(action)
  }

  #act(action) {
    const { desk, draft } = this.session
    if (["down", "up", "find", "note", "back", "undo"].includes(action.do)) this.lastAnswer = -Infinity
    if (action.do === "verdict") this.#answer(action.verdict)
    else if (action.do === "skip") this.#answer("skip")
    else if (action.do === "back") this.session.back()
    else if (action.do === "undo") this.#undo()
    else if (action.do === "kind") this.#kind(action.place)
    else if (action.do === "note") this.note.focus()
    else if (action.do === "keys") sheets.keys(this.sheet)
    else if (action.do === "guide") sheets.guide(this.sheet, this.about.guide)
    else if (action.do === "flag") this.#flag()
    else if (action.do === "find") this.finder.open()
    else if (action.do === "leave") this.#close()
    else if (action.do === "scroll") this.#scroll(action)
    else if ((action.do === "down" || action.do === "up") && desk.current && draft) {
      this.sentence = step(desk.current.sentences ?? [], this.sentence, action.do === "down" ? 1 : -1)
      this.#drawAnswer()
    }
  }

  #answer(verdict) {
    const made = this.#made()
    if (made) made.scrolled = made.left.scrollTop
    const went = this.shown?.standing
    const answer = this.session.answer(verdict)
    if (!answer) return
    this.note.blur()
    const named = [...new Set([...answer.kinds, ...answer.spans.map(([, , kind]) => kind)])].filter(Boolean)
    this.lastAnswer = verdict === "hallucinated" && !named.length ? performance.now() : -Infinity
    this.#draw()
    const given = named.map((key) => ` · ${this.#kindName(key)}`).join("")
    const kinds = this.lastAnswer > 0 ? ` · 1–${this.about.guide.kinds.length} for its kinds` : given
    this.#say(verdict === "skip" && went ? "Left as it was" : `${WORDS[verdict]}${kinds} · Z undoes`)
  }

  #flag() {
    const trace = this.session.desk.current
    if (!trace) return
    sheets.flag(this.sheet, trace.flag ?? null, (note) => {
      this.session.flag(note)
      this.#say(note === null ? "The flag is taken back" : "Flagged for the lead")
    })
  }

  #undo() {
    const taken = this.session.undo()
    if (!taken) return this.#say("There is nothing to undo here")
    const { answer, sent } = taken
    this.#say(sent ? `Back at ${WORDS[answer.verdict]}: it stands until you choose again` : `${WORDS[answer.verdict]} was taken back`)
  }

  #kind(place) {
    const kind = this.about.guide.kinds[place]
    const { draft } = this.session
    if (!kind) return
    if (this.sentence === null && performance.now() - this.lastAnswer < KINDS_AFTER) {
      const kinds = this.session.amend(kind.key)
      if (kinds) {
        const names = this.about.guide.kinds.filter(({ key }) => kinds.includes(key)).map(({ name }) => name)
        this.lastAnswer = performance.now()
        return this.#say(`The answer before: Hallucinated${names.length ? `, ${names.join(", ")}` : ""}`)
      }
    }
    if (!draft) return
    if (this.sentence !== null && this.shown?.sentences) {
      const [from, to] = this.shown.sentences[this.sentence]
      const part = trimmed(this.shown.answer, from, to)
      if (part) this.session.edit(mark(draft, toggled(draft.spans, { ...part, kind: kind.key })))
    } else this.session.edit(toggleKind(draft, kind.key))
  }

  #select(made) {
    const { draft } = this.session
    const part = cards.selected(made, window.getSelection())
    const span = part && trimmed(made.trace.answer, part.start, part.end)
    if (!span || !draft || draft.pk !== made.trace.pk) return
    window.getSelection().removeAllRanges()
    const kind = draft.kinds.length === 1 ? draft.kinds[0] : null
    this.lastAnswer = -Infinity
    this.justMarked = performance.now()
    this.session.edit(mark(draft, toggled(draft.spans, { ...span, kind })))
  }

  #click(made, event) {
    const part = event.target.closest?.("[data-start]")
    if (!part || performance.now() - (this.justMarked ?? -Infinity) < 300) return
    const { draft } = this.session
    if (part.dataset.cites) cards.point_to(made, JSON.parse(part.dataset.cites))
    else if (part.dataset.span && draft?.pk === made.trace.pk) {
      const [start, end] = JSON.parse(part.dataset.span)
      this.session.edit(mark(draft, draft.spans.filter((span) => span.start !== start || span.end !== end)))
    }
  }

  #scroll({ key, answer }) {
    const made = this.#made()
    const by = { arrowdown: 80, arrowup: -80, pagedown: 400, pageup: -400 }[key]
    if (made) (answer ? made.left : made.right).scrollBy({ top: by })
  }

  #close() {
    if (this.sheet.open) this.sheet.close()
    if (this.root.contains(document.activeElement)) document.activeElement.blur()
    this.finder.close()
    if (document.activeElement === document.body) this.sentence = null
    this.#drawAnswer()
  }
}
