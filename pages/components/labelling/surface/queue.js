// Answers on their way to the server, in the order of the presses. Every function gives a new queue; none is dropped.

export const MOST_UNDONE = 10

/** `waiting` is in order; `sent` are the last ten that the server has; `held` need the labeller: conflicts, refusals. */
export const isFlag = (answer) => answer.verdict === "flag" // it goes the same way, and is no answer

export const empty = () => ({ waiting: [], sent: [], held: [] })

/** @param {{turn: string, pk: number, verdict: string}} answer */
export function put(queue, answer) {
  if (queue.waiting.some((other) => other.turn === answer.turn)) return queue
  return { ...queue, waiting: [...queue.waiting, answer] }
}

/** What is sent now: the oldest. The next goes only when the server has answered, so that the order stays. */
export const next = (queue) => queue.waiting[0] ?? null

/**
 * The server's word on the oldest answer: saved, conflict or refused.
 *
 * A later answer on the same trace was given in the knowledge of this one: it has now seen what stands.
 */
export function settled(queue, turn, { status, standing = null, why = "" }) {
  const answer = queue.waiting.find((other) => other.turn === turn)
  if (!answer) return queue
  const waiting = queue.waiting.filter((other) => other !== answer)
  if (status !== "saved") return { ...queue, waiting, held: [...queue.held, { answer, standing, why }] }
  const known = standing ? standing.key : answer.seen
  return {
    ...queue,
    waiting: waiting.map((other) => (other.pk === answer.pk ? { ...other, seen: known } : other)),
    sent: isFlag(answer) ? queue.sent : [...queue.sent.filter((other) => other.turn !== turn), { ...answer, standing }].slice(-MOST_UNDONE),
  }
}

/**
 * Takes back the newest answer. One that waits is gone; one that was sent stands until another takes its place. The
 * answer that is under way (`sending`) counts as sent.
 *
 * Gives the queue, the answer (null for none), and whether it was sent.
 */
export function undo(queue, sending = null) {
  const last = queue.waiting.findLast((answer) => !isFlag(answer))
  if (last && last.turn !== sending) return [{ ...queue, waiting: queue.waiting.filter((other) => other !== last) }, last, false]
  if (last) return [queue, last, true]
  const sent = queue.sent.at(-1)
  return sent ? [{ ...queue, sent: queue.sent.slice(0, -1) }, sent, true] : [queue, null, false]
}

/** The labeller's word on a conflict: `mine` is sent again, now that they have seen what stands; else it is let go. */
export function decide(queue, turn, mine, newTurn) {
  const item = queue.held.find((other) => other.answer.turn === turn)
  if (!item) return queue
  const held = queue.held.filter((other) => other !== item)
  if (!mine) return { ...queue, held }
  return put({ ...queue, held }, { ...item.answer, turn: newTurn, seen: item.standing?.key ?? item.answer.seen })
}

/** The last ten answered traces with the answer that counts, newest last, for the strip. */
export function recent(queue) {
  const answers = [...queue.sent, ...queue.waiting.filter((answer) => !isFlag(answer))]
  return answers.filter((answer, at) => !answers.slice(at + 1).some((later) => later.pk === answer.pk)).slice(-MOST_UNDONE)
}

/** "2 waiting to send", "saved" */
export function inWords(queue) {
  const count = queue.waiting.length
  return count ? `${count} waiting to send` : "saved"
}

/** Seconds until the next try after so many failures in a row. */
export const wait = (failures) => Math.min(10, 0.5 * 2 ** Math.max(0, failures - 1))
