// What a chart can be taken away as: a link to it as it stands, an image, a table. Folded into one menu.

import { element } from "./drawing.mjs"

const SAID = 2000 // ms

export function menu(doing) {
  const said = element("span", { class: "said", role: "status" })
  const item = ([name, title, act]) => {
    const button = element("button", { type: "button", title }, name)
    button.addEventListener("click", async () => {
      const words = await act()
      if (words) {
        said.textContent = words
        setTimeout(() => (said.textContent = ""), SAID)
      }
      close()
    })
    return button
  }
  const summary = element("summary", {}, "Share")
  const whole = element("details", { class: "share" }, summary, element("div", { class: "items" }, ...doing.map(item)))
  const close = () => whole.removeAttribute("open")
  whole.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !whole.open) return
    close()
    summary.focus()
  })
  whole.addEventListener("focusout", (event) => event.relatedTarget && !whole.contains(event.relatedTarget) && close())
  document.addEventListener("pointerdown", (event) => !event.composedPath().includes(whole) && close())
  return element("span", { class: "sharing" }, said, whole)
}

// The address of the chart as it stands: `known` is what the page was drawn for.
export function addressOf(here, known, threshold) {
  const address = new URL(here)
  for (const [key, value] of Object.entries(known)) if (value) address.searchParams.set(key, value)
  if (threshold !== null) address.searchParams.set("threshold", String(threshold))
  return address.toString()
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text)
    return "Link copied"
  } catch {
    // Browsers give the clipboard to pages from this computer or over HTTPS only.
    const field = element("textarea", { readonly: "", style: "position: fixed; opacity: 0" })
    field.value = text
    document.body.append(field)
    field.select()
    const done = document.execCommand("copy")
    field.remove()
    return done ? "Link copied" : "Copy the address of the page"
  }
}
