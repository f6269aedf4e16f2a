// One person at work on one sample: the desk, the queue and the drafts, and their traffic with server and browser.
// It outlives the page that shows it: answers go on being sent while another page is open.

import * as desks from "./desk.js"
import * as drafts from "./draft.js"
import * as keeping from "./keep.js"
import * as pacing from "./pace.js"
import * as queues from "./queue.js"

const sessions = new Map()
const seconds = () => performance.now() / 1000
const newTurn = () => self.crypto?.randomUUID?.() ?? `${Date.now()}-${String(Math.random()).slice(2)}`

/** The session of a person and a sample; the same one while the browser's page lives. */
export function session(about) {
  const key = JSON.stringify([about.scope, about.labeller, about.asked])
  if (!sessions.has(key)) sessions.set(key, new Session(about))
  const known = sessions.get(key)
  known.about = about // the guide may be newer
  return known
}

class Session {
  constructor(about) {
    this.about = about
    this.scope = JSON.stringify([about.scope, about.labeller])
    this.desk = desks.empty()
    this.queue = queues.empty()
    this.draft = null
    this.clock = pacing.start(seconds())
    this.times = []
    this.answers = 0 // given in this session
    this.known = { before: null, now: null } // what the labels told when it began, and at its end; null: not to be told
    this.base = null // how many the person had labelled when the session began; `given` came since
    this.given = new Set()
    this.answered = new Set()
    this.sending = null
    this.asking = false
    this.failures = 0
    this.problem = ""
    this.blocked = ""
    this.lasting = true
    this.over = false
    this.places = new Map()
    this.last = 0
    this.listener = () => {}
    this.ready = this.#load()
  }

  async #load() {
    this.keep = await keeping.open()
    this.lasting = this.keep.lasting
    const records = (await this.keep.all("answers")).filter((record) => record.scope === this.scope)
    for (const record of records.sort((a, b) => a.at - b.at)) {
      if (record.tab !== keeping.tab && (await keeping.isLive(record.tab))) continue
      if (record.held) this.queue = { ...this.queue, held: [...this.queue.held, { answer: record.answer, ...record.held }] }
      else this.queue = queues.put(this.queue, record.answer)
      if (!queues.isFlag(record.answer)) this.answered.add(record.answer.pk)
    }
    this.#send()
    await this.refill(true)
  }

  changed() {
    this.listener()
  }

  // ------------------------------------------------------------------------------------------------ what is asked

  async #post(path, body) {
    const { base, labeller, typed, asked } = this.about
    const response = await fetch(`${base}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      credentials: "same-origin",
      body: JSON.stringify({ ...asked, labeller, typed, ...body }),
    })
    let content = {}
    try {
      content = await response.json()
    } catch {
      if (response.ok) throw new Error("no JSON")
    }
    if (response.status >= 500) throw new Error(content.error ?? `the server answered ${response.status}`)
    return { status: response.status, content }
  }

  async refill(first = false) {
    const wanted = desks.lacking(this.desk)
    if (this.asking || this.blocked || this.over || !wanted || (this.desk.done && !first)) return
    this.asking = true
    try {
      const held = desks.held(this.desk, this.queue)
      const { status, content } = await this.#post("ahead", { wanted, held, behind: first })
      this.failures = 0
      this.problem = ""
      if (status !== 200) this.blocked = content.error ?? "The server refused this."
      else {
        for (const trace of content.traces) if (!this.#waits(trace.pk)) this.answered.delete(trace.pk)
        this.#count(content)
        this.#learn(content.known ?? null)
        this.#arrive(content)
        this.short = content.traces.length < wanted
      }
    } catch (error) {
      this.#failed(error)
      setTimeout(() => this.refill(first), queues.wait(this.failures) * 1000)
    }
    this.asking = false
    this.changed()
    if (!this.problem && !this.blocked && !this.short && desks.lacking(this.desk)) this.refill()
  }

  #count({ place, behind }) {
    if (this.base !== null) return
    this.base = place.labelled
    const known = new Set(behind)
    for (const { pk, verdict } of this.queue.waiting) if (!["skip", "flag"].includes(verdict) && !known.has(pk)) this.given.add(pk)
  }

  #learn(known) {
    if (known !== null) this.known = { before: this.known.before ?? known, now: known }
  }

  /** How many traces of the sample the person has labelled, those that wait to be sent among them. One that came again
   * counts again, or a count that stands still would tell it. */
  get labelled() {
    return (this.base ?? 0) + this.given.size
  }

  // No further answer is wanted: what was fetched ahead is let go, and what was given is sent.
  #end() {
    this.over = true
    this.desk = { ...this.desk, current: null, coming: [], returning: [], done: true }
    this.draft = null
  }

  #waits(pk) {
    return this.queue.waiting.some((answer) => answer.pk === pk && !queues.isFlag(answer))
  }

  #arrive(content) {
    const shown = this.desk.current
    this.desk = desks.arrive(this.desk, content, this.answered)
    if (!shown && this.desk.current) this.#begin()
  }

  async #send() {
    if (this.sending || this.blocked) return
    for (let answer = queues.next(this.queue); answer; answer = queues.next(this.queue)) {
      this.sending = answer.turn
      try {
        const { status, content } = await this.#post("answer", answer)
        this.failures = 0
        this.problem = ""
        if (status === 401 || status === 403) {
          this.blocked = content.error ?? "The server refused this."
          break
        }
        if (content.over) this.#end()
        await this.#settle(answer, status === 200 ? content : { status: "refused", why: content.error ?? "" })
      } catch (error) {
        this.#failed(error)
        setTimeout(() => this.#send(), queues.wait(this.failures) * 1000)
        break
      } finally {
        this.sending = null
      }
    }
    this.changed()
    if (!this.queue.waiting.length && !this.desk.current && !this.over) {
      this.desk = { ...this.desk, done: false }
      this.refill(true)
    }
  }

  async #settle(answer, result) {
    this.queue = queues.settled(this.queue, answer.turn, result)
    if (result.standing) this.desk = desks.note(this.desk, answer.pk, result.standing)
    this.changed()
    for (const later of this.queue.waiting) if (later.pk === answer.pk) await this.#keepAnswer(later)
    const held = this.queue.held.find((item) => item.answer.turn === answer.turn)
    if (held) await this.#keepAnswer(answer, { standing: held.standing, why: held.why })
    else await this.keep.remove("answers", answer.turn)
    if (!held) this.places.delete(answer.turn)
  }

  #failed(error) {
    this.failures += 1
    this.problem = "The server does not answer. What you press is kept here, and sent when it does."
    console.warn("labelling:", error)
    this.changed()
  }

  /** A page shows this work again: there may be more of it by now. */
  resume() {
    this.over = false
    if (!this.desk.current) this.retry()
  }

  /** Try again at once, after a sign-in or when the network is back. */
  retry() {
    this.blocked = ""
    this.failures = 0
    this.#send()
    this.refill(!this.desk.current)
  }

  // ------------------------------------------------------------------------------------------------- what is done

  #begin() {
    const trace = this.desk.current
    ;[this.clock] = pacing.lap(this.clock, seconds())
    this.draft = trace ? drafts.begin(trace) : null
    if (!trace || !this.keep) return
    this.keep.get("drafts", this.#place(trace.pk)).then((kept) => {
      if (kept && this.draft?.pk === trace.pk && drafts.isEmpty(this.draft)) {
        this.draft = drafts.begin(trace, kept.draft)
        this.changed()
      }
    })
  }

  #place = (pk) => `${this.scope} ${pk}`

  edit(draft) {
    this.draft = draft
    const place = this.#place(draft.pk)
    if (drafts.isEmpty(draft)) this.keep?.remove("drafts", place)
    else this.keep?.put("drafts", { place, draft })
    this.changed()
  }

  answer(verdict) {
    const trace = this.desk.current
    if (!trace || !this.draft) return null
    const [clock, spent] = pacing.lap(this.clock, seconds())
    this.clock = clock
    const seen = trace.standing?.key ?? null
    const answer = drafts.answer(this.draft, verdict, { turn: newTurn(), seconds: spent, seen, guide: this.about.guide.version })
    const skipsLabelled = verdict === "skip" && trace.standing // Back led here: it stays as it was labelled
    if (!skipsLabelled) this.#put(answer)
    if (verdict !== "skip" && !trace.standing) this.given.add(this.given.has(trace.pk) ? `${trace.pk} again` : trace.pk)
    if (verdict !== "skip") {
      this.times = [...this.times, spent].slice(-500)
      this.answers += 1
    }
    this.keep?.remove("drafts", this.#place(trace.pk))
    this.desk = desks.pass(this.desk)
    this.#begin()
    this.changed()
    this.refill()
    return answer
  }

  #put(answer) {
    this.answered.add(answer.pk)
    this.queue = queues.put(this.queue, answer)
    this.#keepAnswer(answer).finally(() => this.#send())
  }

  #keepAnswer(answer, held = null) {
    if (!this.keep) return Promise.resolve()
    if (!this.places.has(answer.turn)) {
      this.last = Math.max(this.last + 1, Date.now() * 1000) // in the order of the presses, also after a reload
      this.places.set(answer.turn, this.last)
    }
    const at = this.places.get(answer.turn)
    return this.keep.put("answers", { turn: answer.turn, scope: this.scope, tab: keeping.tab, at, answer, held })
  }

  /** Ask the lead to look at the trace in sight; null takes that back. It waits and is sent as answers are. */
  flag(note) {
    const trace = this.desk.current
    if (!trace) return
    trace.flag = note
    const flag = { turn: newTurn(), pk: trace.pk, verdict: "flag", note }
    this.queue = queues.put(this.queue, flag)
    this.#keepAnswer(flag).finally(() => this.#send())
    this.changed()
  }

  /** A kind for the answer just given, while it is still said so. */
  amend(kind) {
    const last = queues.recent(this.queue).at(-1)
    if (!last || last.verdict !== "hallucinated") return null
    const kinds = last.kinds.includes(kind) ? last.kinds.filter((other) => other !== kind) : [...last.kinds, kind]
    const waits = this.queue.waiting.find((answer) => answer.turn === last.turn)
    if (waits && waits.turn !== this.sending) {
      const changed = { ...waits, kinds }
      this.queue = { ...this.queue, waiting: this.queue.waiting.map((answer) => (answer === waits ? changed : answer)) }
      this.#keepAnswer(changed)
    } else {
      const { standing, ...answer } = last
      this.#put({ ...answer, kinds, turn: newTurn(), seconds: null, seen: standing?.key ?? answer.seen })
    }
    this.changed()
    return kinds
  }

  /** Takes back the last answer and shows its trace. Gives what was taken back, and whether it had been sent. */
  undo() {
    const [queue, answer, sent] = queues.undo(this.queue, this.sending)
    if (!answer) return null
    this.queue = queue
    if (!sent) {
      this.keep?.remove("answers", answer.turn)
      if (answer.seen === null && !this.given.delete(`${answer.pk} again`)) this.given.delete(answer.pk)
    }
    this.#show(answer.pk, answer)
    return { answer, sent }
  }

  back() {
    const pk = desks.before(this.desk)
    if (pk !== null) this.#show(pk)
  }

  async #show(pk, answer = null) {
    const before = this.desk
    this.desk = desks.back(this.desk, pk)
    if (this.desk === before) {
      try {
        const { status, content } = await this.#post("ahead", { wanted: 0, pks: [pk] })
        if (status !== 200 || !content.traces.length) return
        this.desk = desks.back(this.desk, pk, content.traces[0])
      } catch (error) {
        return this.#failed(error)
      }
    }
    this.#begin()
    if (answer && answer.verdict !== "skip") {
      const spans = answer.spans.map(([start, end, kind]) => ({ start, end, kind }))
      const { verdict, kinds, note } = answer
      this.draft = { ...this.draft, verdict, kinds, note, spans }
    }
    this.changed()
  }

  decide(turn, mine) {
    this.queue = queues.decide(this.queue, turn, mine, newTurn())
    this.keep?.remove("answers", turn)
    const next = this.queue.waiting.at(-1)
    if (mine && next) this.#keepAnswer(next).finally(() => this.#send())
    this.changed()
  }

  alive() {
    this.clock = pacing.touch(this.clock, seconds())
  }

  inSight(visible) {
    this.clock = pacing.show(this.clock, seconds(), visible)
  }
}
