import assert from "node:assert/strict"
import { test } from "node:test"

import * as geometry from "../../pages/components/threshold_chart/geometry.mjs"

// The same question answered by going through every point.
function reached(thresholds, threshold, above) {
  return thresholds.filter((one) => (above ? one >= threshold : one <= threshold)).length - 1
}

function random(seed) {
  let state = seed
  return () => (state = (state * 16807) % 2147483647) / 2147483647
}

function sweeps() {
  const next = random(7)
  return [1, 2, 3, 17, 200].flatMap((size) =>
    [true, false].map((above) => {
      const scores = [...new Set(Array.from({ length: size }, () => Math.round(next() * 400) / 100 - 2))]
      return [scores.sort((a, b) => (above ? b - a : a - b)), above, next]
    }),
  )
}

test("the point that holds is the last one at least as strict", () => {
  for (const [thresholds, above, next] of sweeps()) {
    for (let draw = 0; draw < 50; draw++) {
      const at = next() * 5 - 2.5
      assert.equal(geometry.pointAt(thresholds, at, above), reached(thresholds, at, above))
    }
    for (const [place, at] of thresholds.entries()) assert.equal(geometry.pointAt(thresholds, at, above), place)
  }
})

test("the nearest point is nearer than every other", () => {
  for (const [thresholds, above, next] of sweeps()) {
    for (let draw = 0; draw < 50; draw++) {
      const at = next() * 5 - 2.5
      const nearest = thresholds[geometry.nearestPoint(thresholds, at, above)]
      assert.equal(Math.abs(nearest - at), Math.min(...thresholds.map((one) => Math.abs(one - at))))
    }
  }
})

test("a step goes to the next label on the axis and stops at its end", () => {
  for (const [thresholds, above, next] of sweeps()) {
    const ascending = [...thresholds].sort((a, b) => a - b)
    for (const at of [...thresholds, next() * 5 - 2.5, -9, 9]) {
      const right = ascending.find((one) => one > at) ?? ascending.at(-1)
      const left = ascending.findLast((one) => one < at) ?? ascending[0]
      assert.equal(geometry.stepFrom(thresholds, at, +1, above), right)
      assert.equal(geometry.stepFrom(thresholds, at, -1, above), left)
    }
  }
})

test("steps to the right visit every label once", () => {
  for (const [thresholds, above] of sweeps()) {
    const ascending = [...thresholds].sort((a, b) => a - b)
    const visited = [ascending[0]]
    while (visited.length < ascending.length) {
      visited.push(geometry.stepFrom(thresholds, visited.at(-1), +1, above))
    }
    assert.deepEqual(visited, ascending)
  }
})

test("a scale and its way back", () => {
  const across = geometry.scale([-0.5, 2], [40, 660])
  assert.equal(across(-0.5), 40)
  assert.equal(across(2), 660)
  for (const value of [-0.5, 0, 0.731, 2]) assert.ok(Math.abs(across.back(across(value)) - value) < 1e-12)
  assert.equal(geometry.scale([1, 1], [0, 10])(1), 5)
})

test("ticks leave room for their texts", () => {
  const ticks = Array.from({ length: 21 }, (_, place) => ({ value: place, text: String(place) }))
  const across = geometry.scale([0, 20], [0, 200])
  const seen = geometry.thinTicks(ticks, across, 45)
  assert.deepEqual(seen.map((tick) => tick.value), [0, 5, 10, 15, 20])
  assert.equal(geometry.thinTicks([], across, 45).length, 0)
})

test("a line holds its value until the next threshold and breaks where nothing is known", () => {
  const across = geometry.scale([0, 10], [0, 100])
  const up = geometry.scale([0, 1], [100, 0])
  assert.equal(geometry.steps([9, 5], [1, 0.5], across, up, 0), "M90.0 0.0H50.0V50.0H0.0")
  assert.equal(geometry.steps([9, 5], [null, 0.5], across, up, 0), "M50.0 50.0H0.0")
})

test("a typed number is read as people write it", () => {
  for (const [text, value] of [["0.62", 0.62], [" −1.25 ", -1.25], ["12,346", 12346], ["1e-3", 0.001], [".5", 0.5]]) {
    assert.equal(geometry.typedNumber(text), value)
  }
  for (const text of ["", "abc", "nan", "Infinity", "1e999", "0.1.2", "0x10", "≥ 0.6", "<b>1</b>"]) {
    assert.equal(geometry.typedNumber(text), null)
  }
})

test("a cell cannot be a formula, and a negative number stays a number", () => {
  const rows = [["=1+1", "@x", "+a", "-b", 'say "no", twice'], [-0.5, null, 0.25, "plain", undefined]]
  assert.equal(
    geometry.csv(rows),
    `'=1+1,'@x,'+a,'-b,"say ""no"", twice"\r\n-0.5,,0.25,plain,\r\n`,
  )
})
