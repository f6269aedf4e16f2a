// Which trace is shown, which come next, and where Back leads. Every function gives a new desk.

export const AHEAD = 5 // traces that wait at least, as far as there are any
export const ASK = 16 // how many are held once the server has answered: fast presses outrun a slow network
const KEEP = 20 // traces passed whose texts are held for Back

export const empty = () => ({ current: null, coming: [], passed: [], behind: [], again: 0, returning: [], place: null, done: false })

/** The traces that came; those at hand or answered already are left out. An empty answer ends the sample. One that was
 * passed before and comes again looks like a new one: Back leads from it to the last, and counting goes on. */
export function arrive(desk, { traces, place, behind: labelled }, answered = new Set()) {
  const here = new Set([desk.current, ...desk.coming, ...desk.returning].filter(Boolean).map((trace) => trace.pk))
  const fresh = traces.filter((trace) => !here.has(trace.pk) && !answered.has(trace.pk))
  const coming = [...desk.coming, ...fresh]
  const before = labelled ?? desk.behind
  const behind = before.filter((pk) => !fresh.some((trace) => trace.pk === pk))
  const again = (labelled ? 0 : desk.again) + before.length - behind.length
  const next = { ...desk, coming, place, behind, again, done: !coming.length && !traces.length }
  return next.current ? next : forward(next)
}

/** How many traces to ask for now; 0 where enough wait. */
export function lacking(desk) {
  const waiting = desk.coming.length
  return waiting < ASK - 2 ? ASK - waiting : 0
}

/** The current trace was answered or passed over: the next one comes at once. */
export function pass(desk) {
  if (!desk.current) return desk
  const { current } = desk
  const passed = [...desk.passed.filter((trace) => trace.pk !== current.pk), current].slice(-KEEP)
  const behind = [...desk.behind.filter((pk) => pk !== current.pk), current.pk]
  return forward({ ...desk, current: null, passed, behind })
}

/** The number of the current trace among those of this labeller. */
export function number(desk) {
  const at = desk.current ? desk.behind.indexOf(desk.current.pk) : -1
  return Math.min(desk.place?.size ?? 0, at < 0 ? desk.behind.length + desk.again + 1 : at + 1)
}

/** The trace before the current one, or before the one of this key; null where there is none. */
export function before(desk) {
  const at = desk.current ? desk.behind.indexOf(desk.current.pk) : -1
  return (at < 0 ? desk.behind.at(-1) : desk.behind[at - 1]) ?? null
}

/** Goes back to a trace: the current one comes after it. Without its text the desk stays, and the text must be got. */
export function back(desk, pk, trace = desk.passed.find((other) => other.pk === pk)) {
  if (!trace || desk.current?.pk === pk) return desk
  const coming = desk.coming.filter((other) => other.pk !== pk)
  const returning = desk.returning.filter((other) => other.pk !== pk)
  const later = desk.current ? [desk.current, ...returning] : returning
  return { ...desk, coming, returning: later, current: trace, done: false }
}

/** The label that stands on a trace now, wherever the desk holds it. */
export function note(desk, pk, standing) {
  const renew = (trace) => (trace && trace.pk === pk ? { ...trace, standing } : trace)
  const { coming, passed, returning } = desk
  const [a, b, c] = [coming, passed, returning].map((traces) => traces.map(renew))
  return { ...desk, current: renew(desk.current), coming: a, passed: b, returning: c }
}

/** The keys that the browser holds or has answered, so that the server leaves them out. */
export function held(desk, queue) {
  const keys = [desk.current, ...desk.coming, ...desk.returning].filter(Boolean).map((trace) => trace.pk)
  return [...new Set([...keys, ...queue.waiting.map((answer) => answer.pk)])]
}

function forward(desk) {
  if (desk.returning.length) {
    const [current, ...returning] = desk.returning
    return { ...desk, current, returning }
  }
  const [current = null, ...coming] = desk.coming
  return { ...desk, current, coming }
}
