import assert from "node:assert/strict"
import { test } from "node:test"
import { finds, length, pieces, step, toPoints, toggled, trimmed } from "../../pages/components/labelling/surface/text.js"

const TRICKY = "a 👩‍👩‍👧 é e\u0301 שלום \u202eabc\u202c x"

test("offsets count code points, not UTF-16 units", () => {
  assert.equal(length("🙂a"), 2)
  assert.equal(toPoints("🙂a", 2), 1)
  assert.equal(toPoints("🙂a", 1), 0) // amid a pair
  assert.equal(toPoints(TRICKY, TRICKY.length), [...TRICKY].length)
})

test("pieces cover the text once, whatever marks there are", () => {
  const points = [...TRICKY]
  for (let start = 0; start < points.length; start += 1) {
    for (let end = start + 1; end <= points.length; end += 3) {
      const mark = { start, end }
      const cut = pieces(TRICKY, [mark])
      assert.deepEqual(cut.map((piece) => [piece.start, piece.end]).flat().at(0), 0)
      let at = 0
      for (const piece of cut) {
        assert.equal(piece.start, at)
        at = piece.end
        if (piece.text !== undefined) assert.equal(piece.text, points.slice(piece.start, piece.end).join(""))
        const inside = start <= piece.start && piece.end <= end
        assert.deepEqual(piece.marks, inside ? [mark] : [])
      }
      assert.equal(at, points.length)
    }
  }
})

test("acting characters are chips with their names, and joiners of an emoji are not", () => {
  const chips = pieces(TRICKY).filter((piece) => piece.name)
  assert.deepEqual(chips.map((piece) => piece.name), ["RLO", "U+202C"])
  assert.deepEqual(pieces("a\u200b\u200bb").map((piece) => piece.name ?? piece.text), ["a", "U+200B", "b"])
  assert.equal(pieces("a\u200b\u200bb")[1].count, 2)
})

test("line breaks of JSON are shown and are not of the text", () => {
  const cut = pieces('{"a":1}', [], [[1, "\n  "], [6, "\n"]])
  assert.equal(cut.map((piece) => piece.inserted ?? piece.text).join(""), '{\n  "a":1\n}')
  assert.deepEqual(cut.filter((piece) => !piece.inserted).map((piece) => piece.end), [1, 6, 7])
})

test("a selection loses the blanks around it", () => {
  assert.deepEqual(trimmed(" 🙂 b ", 0, 5), { start: 1, end: 4 })
  assert.deepEqual(trimmed(" 🙂 b ", 4, 1), { start: 1, end: 4 })
  assert.equal(trimmed("a   b", 1, 3), null)
})

test("spans of a kind that overlap join, and the same one again goes", () => {
  const one = toggled([], { start: 2, end: 5, kind: "a" })
  assert.deepEqual(toggled(one, { start: 4, end: 8, kind: "a" }), [{ start: 2, end: 8, kind: "a" }])
  assert.equal(toggled(one, { start: 4, end: 8, kind: "b" }).length, 2)
  assert.deepEqual(toggled(one, { start: 2, end: 5, kind: "b" }), [{ start: 2, end: 5, kind: "b" }])
  assert.deepEqual(toggled(one, { start: 2, end: 5, kind: "a" }), [])
})

test("J and K stay within the sentences", () => {
  const sentences = [[0, 2], [3, 5]]
  assert.equal(step(sentences, null, 1), 0)
  assert.equal(step(sentences, null, -1), 1)
  assert.equal(step(sentences, 1, 1), 1)
  assert.equal(step(sentences, 0, -1), 0)
  assert.equal(step([], null, 1), null)
})

test("what is looked for is found without regard to case", () => {
  assert.deepEqual(finds("Ab aB", "ab"), [[0, 2], [3, 5]])
  assert.deepEqual(finds("abc", "  "), [])
  assert.deepEqual(finds("aaaa", "aa"), [[0, 2], [2, 4]])
})
