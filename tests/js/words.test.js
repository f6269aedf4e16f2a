import assert from "node:assert/strict"
import { test } from "node:test"
import { learned } from "../../pages/components/labelling/surface/words.js"

test("the session's report says what the labels did to the share hallucinated", () => {
  const before = "6% (1–18%)"
  assert.equal(
    learned({ before, now: "4.9% (2–11%)" }),
    "Hallucinated in the traffic: 4.9% (2–11%). Before this session it was 6% (1–18%).",
  )
  assert.match(learned({ before, now: before }), /: 6% \(1–18%\), as before/)
  assert.match(learned({ before: "", now: before }), /Nothing was known of it before/)
})

test("it says nothing to whom nothing was sent, and where nothing is known", () => {
  assert.equal(learned({ before: null, now: null }), "")
  assert.equal(learned({ before: "", now: "" }), "")
})
