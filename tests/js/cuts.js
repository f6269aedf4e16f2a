// Reads cases [text, start, end] and writes what text.js makes of them: the slice, and the chips of the whole text.
import { readFileSync } from "node:fs"
import { length, pieces, toPoints } from "../../pages/components/labelling/surface/text.js"

const cases = JSON.parse(readFileSync(0, "utf8"))
const answers = cases.map(([text, start, end]) => {
  const inside = pieces(text, [{ start, end }]).filter((piece) => piece.marks?.length)
  const points = [...text]
  return {
    slice: inside.map((piece) => points.slice(piece.start, piece.end).join("")).join(""),
    chips: pieces(text).filter((piece) => piece.name).map((piece) => [piece.name, piece.count]),
    length: length(text),
    end: toPoints(text, text.length),
  }
})
process.stdout.write(JSON.stringify(answers))
