import assert from "node:assert/strict"
import { test } from "node:test"
import * as pace from "../../pages/components/labelling/surface/pace.js"

test("an hour away counts a minute", () => {
  let clock = pace.start(0)
  clock = pace.touch(clock, 10)
  clock = pace.touch(clock, 3610)
  assert.equal(clock.total, 70)
  assert.equal(clock.sinceBreak, 0, "and was a break")
})

test("a page out of sight counts nothing", () => {
  let clock = pace.show(pace.start(0), 5, false)
  clock = pace.show(clock, 50, true)
  const [after, seconds] = pace.lap(clock, 52)
  assert.equal(seconds, 7)
  assert.equal(after.trace, 0)
})

test("forty-five active minutes ask for a break, and a rest ends that", () => {
  let clock = pace.start(0)
  for (let at = 30; at <= 45 * 60; at += 30) clock = pace.touch(clock, at)
  assert.ok(pace.needsBreak(clock))
  assert.ok(!pace.needsBreak(pace.rest(clock)))
})

test("the pace is a median of the last twenty, in words", () => {
  assert.equal(pace.pace([]), null)
  assert.equal(pace.pace([500, ...Array(20).fill(9)]), 9)
  assert.equal(pace.inWords(14, 118), "14 s each · about 28 min left")
  assert.equal(pace.inWords(0.2, 1), "1 s each · about a minute left")
  assert.equal(pace.inWords(null, 3), "")
})
