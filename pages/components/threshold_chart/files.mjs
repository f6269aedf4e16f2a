// The chart as files: its arrays as CSV, its drawing as PNG.

import { csv } from "./geometry.mjs"
import { make } from "./drawing.mjs"

const PIXELS = 2 // of the image for one of the screen

export function table(arrays) {
  const rates = ["precision", "recall", "fpr", "flag_rate"]
  const head = ["threshold", ...rates.flatMap((name) => [name, `${name}_low`, `${name}_high`])]
  const counts = Object.keys(arrays.counts)
  const rows = arrays.thresholds.map((threshold, place) => [
    threshold,
    ...rates.flatMap((name) => arrays.values[name][place]),
    ...counts.map((name) => arrays.counts[name][place]),
    arrays.verdicts[place],
  ])
  return csv([[...head, ...counts, "verdict"], ...rows])
}

export const fileName = (title, ending) =>
  `${title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "").toLowerCase() || "threshold"}.${ending}`

export function save(blob, name) {
  const link = document.createElement("a")
  const address = URL.createObjectURL(blob)
  Object.assign(link, { href: address, download: name })
  link.click()
  setTimeout(() => URL.revokeObjectURL(address), 10_000)
}

// The drawing on the page's own ground, with lines of text above it.
export async function image(svg, { ground, ink, font, lines }) {
  const [width, height] = ["width", "height"].map((name) => Number(svg.getAttribute(name)))
  const head = 14 + 19 * lines.length
  const whole = make("svg", {
    xmlns: "http://www.w3.org/2000/svg", width, height: height + head, viewBox: `0 0 ${width} ${height + head}`,
  }) // prettier-ignore
  whole.setAttribute("style", `color:${ink};font-family:${font}`)
  whole.append(make("rect", { width, height: height + head, fill: ground }))
  lines.forEach((line, place) => {
    const weight = { "font-weight": place ? 400 : 700, "font-size": place ? 12 : 14 }
    whole.append(make("text", { x: 8, y: 20 + 19 * place, fill: "currentColor", ...weight }, line))
  })
  const body = make("g", { transform: `translate(0 ${head})` })
  body.append(...[...svg.childNodes].map((node) => node.cloneNode(true)))
  whole.append(body)
  const picture = new Image()
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(whole))}`
  await picture.decode()
  const canvas = document.createElement("canvas")
  Object.assign(canvas, { width: width * PIXELS, height: (height + head) * PIXELS })
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height)
  return new Promise((done) => canvas.toBlob(done, "image/png"))
}
