import assert from "node:assert/strict"
import { test } from "node:test"
import * as desks from "../../pages/components/labelling/surface/desk.js"
import * as drafts from "../../pages/components/labelling/surface/draft.js"
import * as queues from "../../pages/components/labelling/surface/queue.js"

const traces = (...pks) => pks.map((pk) => ({ pk, standing: null }))
const arrived = (...pks) => desks.arrive(desks.empty(), { traces: traces(...pks), place: {}, behind: [] })

test("the first trace shows, and a press brings the next at once", () => {
  let desk = arrived(1, 2, 3)
  assert.equal(desk.current.pk, 1)
  desk = desks.pass(desk)
  assert.deepEqual([desk.current.pk, desk.coming.map((one) => one.pk)], [2, [3]])
  desk = desks.pass(desks.pass(desk))
  assert.equal(desk.current, null)
  assert.equal(desk.done, false, "the server has not said that this is all")
  assert.equal(desks.arrive(desk, { traces: [], place: {} }).done, true)
})

test("a trace that is at hand or answered does not come again", () => {
  const desk = desks.arrive(desks.pass(arrived(1, 2)), { traces: traces(1, 2, 3), place: {} }, new Set([1]))
  assert.deepEqual([desk.current.pk, ...desk.coming.map((one) => one.pk)], [2, 3])
})

test("Back leads through what was passed, and forward to where one was", () => {
  let desk = desks.pass(desks.pass(arrived(1, 2, 3)))
  desk = desks.back(desk, desks.before(desk))
  assert.equal(desk.current.pk, 2)
  desk = desks.back(desk, desks.before(desk))
  assert.equal(desk.current.pk, 1)
  assert.equal(desks.before(desk), null)
  assert.deepEqual([desk.returning.map((one) => one.pk)], [[2, 3]])
  desk = desks.pass(desk)
  assert.equal(desk.current.pk, 2)
  desk = desks.pass(desks.pass(desk))
  assert.equal(desk.current, null)
})

test("a trace that comes again looks like a new one", () => {
  let desk = desks.pass(desks.pass(desks.pass(arrived(1, 2, 3))))
  desk = desks.arrive(desk, { traces: traces(4, 1), place: { size: 9 } })
  assert.deepEqual([desk.current.pk, desks.number(desk), desks.before(desk)], [4, 4, 3])
  desk = desks.pass(desk)
  assert.deepEqual([desk.current.pk, desks.number(desk), desks.before(desk)], [1, 5, 4])
  desk = desks.arrive(desks.pass(desk), { traces: traces(5), place: { size: 9 } })
  assert.deepEqual([desk.current.pk, desks.number(desk), desks.before(desk)], [5, 6, 1])
})

test("the held keys are those shown, coming and unsent", () => {
  const queue = queues.put(queues.empty(), { turn: "t", pk: 9 })
  assert.deepEqual(desks.held(arrived(1, 2), queue), [1, 2, 9])
  assert.equal(desks.lacking(arrived(1)), 16)
  assert.equal(desks.lacking(arrived(...Array.from({ length: 16 }, (_, i) => i + 1))), 0)
})

test("memory stays flat over five hundred traces", () => {
  let desk = arrived(...Array.from({ length: 500 }, (_, i) => i + 1))
  while (desk.current) desk = desks.pass(desk)
  assert.equal(desk.passed.length, 20)
  assert.equal(desk.behind.length, 500) // keys alone
})

test("a draft begins with what stands, and marking chooses Hallucinated", () => {
  const trace = { pk: 4, standing: { key: 8, verdict: "clean", kinds: [], spans: [], note: "n" } }
  let draft = drafts.begin(trace)
  assert.deepEqual([draft.verdict, draft.note], ["clean", "n"])
  draft = drafts.toggleKind(drafts.mark(draft, [{ start: 0, end: 2, kind: "other" }]), "fabrication")
  assert.equal(draft.verdict, "hallucinated")
  const given = drafts.answer(draft, "hallucinated", { turn: "t", seconds: 1.5, seen: 8 })
  assert.deepEqual(given.spans, [[0, 2, "other"]])
  assert.deepEqual(given.kinds, ["fabrication"])
  const clean = drafts.answer(draft, "clean", { turn: "t", seconds: 1.5, seen: 8 })
  assert.deepEqual([clean.spans, clean.kinds, clean.note], [[], [], "n"])
  assert.equal(drafts.begin(trace, draft), draft, "what was half written comes back")
})
