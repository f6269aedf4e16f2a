import assert from "node:assert/strict"
import { test } from "node:test"
import * as queue from "../../pages/components/labelling/surface/queue.js"

const answer = (turn, pk, seen = null) => ({ turn, pk, verdict: "clean", seen })
const of = (...answers) => answers.reduce(queue.put, queue.empty())

test("forty presses go in order, one after the other, and none is lost", () => {
  let state = of(...Array.from({ length: 40 }, (_, i) => answer(`t${i}`, i)))
  const sent = []
  for (let one = queue.next(state); one; one = queue.next(state)) {
    sent.push(one.turn)
    state = queue.settled(state, one.turn, { status: "saved", standing: { key: sent.length } })
  }
  assert.deepEqual(sent, Array.from({ length: 40 }, (_, i) => `t${i}`))
  assert.equal(state.sent.length, 10)
  assert.equal(queue.inWords(state), "saved")
})

test("a turn is in the queue once, and a late reply to what is gone changes nothing", () => {
  const state = of(answer("a", 1), answer("a", 1))
  assert.equal(state.waiting.length, 1)
  assert.equal(queue.settled(state, "b", { status: "saved" }), state)
})

test("a second answer on a trace has seen the first", () => {
  const state = queue.settled(of(answer("a", 1), answer("b", 2), answer("c", 1)), "a", {
    status: "saved", standing: { key: 9 },
  })
  assert.deepEqual(state.waiting.map((one) => one.seen), [null, 9])
})

test("undo takes back what waits, and says of what was sent that it stands", () => {
  let [state, taken, was] = queue.undo(of(answer("a", 1), answer("b", 2)))
  assert.deepEqual([taken.turn, was, state.waiting.length], ["b", false, 1])
  ;[state, taken, was] = queue.undo(state, "a") // under way: it may have arrived
  assert.deepEqual([taken.turn, was, state.waiting.length], ["a", true, 1])
  state = queue.settled(state, "a", { status: "saved", standing: { key: 3 } })
  ;[state, taken, was] = queue.undo(state)
  assert.deepEqual([taken.turn, taken.standing.key, was], ["a", 3, true])
  assert.deepEqual(queue.undo(state)[1], null)
})

test("a conflict holds up nothing and overwrites nothing until the labeller decides", () => {
  let state = queue.settled(of(answer("a", 1), answer("b", 2)), "a", { status: "conflict", standing: { key: 7 } })
  assert.equal(queue.next(state).turn, "b")
  assert.equal(state.held[0].answer.turn, "a")
  assert.deepEqual(queue.decide(state, "a", false, "c").held, [])
  state = queue.decide(state, "a", true, "c")
  assert.deepEqual(state.waiting.map((one) => [one.turn, one.seen]), [["b", null], ["c", 7]])
})

test("the strip holds the last ten", () => {
  const state = of(...Array.from({ length: 15 }, (_, i) => answer(`t${i}`, i)))
  assert.equal(queue.recent(state).length, 10)
  assert.equal(queue.recent(state).at(-1).turn, "t14")
  const changed = queue.recent(of(answer("a", 1), answer("b", 2), answer("c", 1)))
  assert.deepEqual(changed.map((one) => one.turn), ["b", "c"], "a change of mind is no second answer")
})

test("tries come further apart, at most ten seconds", () => {
  assert.deepEqual([1, 2, 3, 9].map(queue.wait), [0.5, 1, 2, 10])
})
