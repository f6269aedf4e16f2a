import assert from "node:assert/strict"
import { test } from "node:test"

import { inSight, isTaken, reveal, rowAfter } from "../../pages/traces/trace_list/places.mjs"

test("every row that touches the window is drawn, and few others", () => {
  for (let top = 0; top <= 1000; top += 7) {
    const [first, last] = inSight(top, 300, 20, 50, 2)
    for (let row = 0; row < 20; row++) {
      const touches = row * 50 < top + 300 && row * 50 + 50 > top
      if (touches) assert.ok(first <= row && row < last, `row ${row} at ${top}`)
    }
    assert.ok(last - first <= 300 / 50 + 1 + 2 * 2)
    assert.ok(0 <= first && first <= last && last <= 20)
  }
})

test("a revealed row is wholly in sight, and nothing moves for one that is", () => {
  for (let top = 0; top <= 700; top += 13) {
    for (let row = 0; row < 20; row++) {
      const to = reveal(row, top, 300, 50)
      assert.ok(to <= row * 50 && row * 50 + 50 <= to + 300)
      if (top <= row * 50 && row * 50 + 50 <= top + 300) assert.equal(to, top)
    }
  }
})

test("keys lead to the next row, to no row beyond the ends, and to none from other keys", () => {
  assert.equal(rowAfter("j", -1, 5, 3), 0)
  assert.equal(rowAfter("ArrowDown", 0, 5, 3), 1)
  assert.equal(rowAfter("K", 0, 5, 3), 0)
  assert.equal(rowAfter("j", 4, 5, 3), 4)
  assert.equal(rowAfter("PageDown", 0, 5, 3), 3)
  assert.equal(rowAfter("PageUp", 4, 5, 3), 1)
  assert.equal(rowAfter("End", 0, 5, 3), 4)
  assert.equal(rowAfter("Home", 3, 5, 3), 0)
  for (const key of ["a", "x", "Enter", "toString"]) assert.equal(rowAfter(key, 0, 5, 3), null)
  assert.equal(rowAfter("j", -1, 0, 3), null)
})

test("fields keep their letters", () => {
  assert.ok(isTaken("TEXTAREA", undefined, false))
  assert.ok(isTaken("INPUT", "text", false))
  assert.ok(isTaken("DIV", undefined, true))
  assert.ok(!isTaken("INPUT", "checkbox", false))
  assert.ok(!isTaken("BUTTON", undefined, false))
})
