import assert from "node:assert/strict"
import { test } from "node:test"
import { meaning } from "../../pages/components/labelling/surface/keys.js"

const press = (key, more = {}, where = {}) => meaning({ key, ...more }, where)

test("one key is one verdict, in either case of the keyboard", () => {
  assert.deepEqual(press("a"), { do: "verdict", verdict: "clean" })
  assert.deepEqual(press("X"), { do: "verdict", verdict: "hallucinated" })
  assert.deepEqual(press("u"), { do: "verdict", verdict: "unsure" })
  assert.deepEqual(["Backspace", " ", "z", "j", "K", "n", "g", "/", "?"].map((key) => press(key).do), [
    "back", "skip", "undo", "down", "up", "note", "guide", "find", "keys",
  ])
  assert.deepEqual(press("6"), { do: "kind", place: 5 })
})

test("letters in a note are a note, and Enter ends it", () => {
  for (const key of ["a", "x", " ", "Backspace", "1"]) assert.equal(press(key, {}, { typing: true }), null)
  assert.deepEqual(press("Enter", {}, { typing: true }), { do: "leave" })
  assert.equal(press("Enter", { shiftKey: true }, { typing: true }), null)
})

test("what the browser has stays the browser's", () => {
  for (const more of [{ ctrlKey: true }, { metaKey: true }, { altKey: true }]) assert.equal(press("a", more), null)
  assert.equal(press("Tab"), null)
  assert.equal(press(" ", {}, { onButton: true }), null)
})

test("a held key answers once, and moves on through sentences", () => {
  assert.deepEqual(press("a", { repeat: true }), { do: "nothing" })
  assert.deepEqual(press(" ", { repeat: true }), { do: "nothing" })
  assert.deepEqual(press("j", { repeat: true }), { do: "down" })
})

test("under a sheet no verdict is given", () => {
  assert.deepEqual(press("a", {}, { open: true }), { do: "nothing" })
  assert.deepEqual(press("?", {}, { open: true }), { do: "leave" })
  assert.deepEqual(press("Escape", {}, { open: true }), { do: "leave" })
})
