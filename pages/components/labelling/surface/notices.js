// What the surface says above the trace when something is wrong, and in its place when there is none.

import { button, element } from "./dom.js"
import { inWords as paceInWords, needsBreak, pace, rest } from "./pace.js"
import { inWords } from "./queue.js"
import { learned } from "./words.js"

/** Changes where other alerts are due. */
export function stateOf({ problem, blocked, queue, clock, lasting }) {
  return JSON.stringify([problem, blocked, queue.held.map((item) => item.answer.turn), needsBreak(clock), lasting])
}

/** The alerts that are due; `changed` is called where one is dismissed. */
export function alerts(session, words, changed) {
  const { problem, blocked, queue, clock, lasting } = session
  const due = []
  if (blocked) due.push(alert(`${blocked} What you pressed is kept here.`, button("plain", "Try again", "", () => session.retry())))
  else if (problem) due.push(alert(problem))
  if (!lasting) due.push(alert("This browser keeps nothing: leave the page only when all is saved."))
  for (const { answer, standing, why } of queue.held) {
    const drop = button("plain", standing ? "Keep what stands" : "Let it go", "", () => session.decide(answer.turn, false))
    const mine = button("plain", standing ? `Make it ${answer.verdict}` : "Send again", "", () => session.decide(answer.turn, true))
    const says = standing ? words.conflict(standing, answer.verdict) : `An answer (${answer.verdict}) was not taken: ${why}`
    due.push(alert(says, drop, mine))
  }
  if (needsBreak(clock)) {
    const go = button("plain", "Go on", "", () => {
      session.clock = rest(session.clock)
      changed()
    })
    due.push(alert("45 minutes of labelling: a break keeps your eye sharp.", go))
  }
  return due
}

const isDone = ({ desk, queue }) => desk.done && !queue.waiting.length && desk.place

/** Whether the work has ended, so that the page has something else to show. */
export const isOver = (session) => Boolean(isDone(session)) && (session.over || session.about.kind === "recheck")

/** What stands where no trace is to be shown: the session's report, or why there is none yet. */
export function nothing(session, words) {
  const { about, desk, queue, times, answers, known } = session
  const box = element("div", "nothing")
  if (isDone(session)) {
    box.append(element("h2", "", words.done(desk.place.size)))
    if (answers) {
      const given = answers === 1 ? "1 answer" : `${answers} answers`
      box.append(element("p", "", `You gave ${given} in this session, ${paceInWords(pace(times), 0)}.`))
      const told = learned(known)
      if (told) box.append(element("p", "learned", told))
    }
    const { next, go } = words
    if (next) box.append(element("p", "quiet", next))
    if (go && (go.page !== "detect" || about.may_detect)) box.append(button("go", go.text, "", () => about.go(go.page)))
  } else if (desk.done) {
    box.append(element("p", "", `That was the last trace. ${inWords(queue)}.`))
  } else {
    box.append(element("p", "quiet", session.problem || session.blocked ? "" : "The next trace is on its way …"))
  }
  return box
}

function alert(words, ...buttons) {
  const made = element("div", "alert")
  made.setAttribute("role", "alert")
  made.append(element("span", "", words), ...buttons)
  return made
}
