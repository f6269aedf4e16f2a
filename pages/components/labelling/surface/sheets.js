// What opens above a trace: the keys, the guide, and what to ask the lead. Each fills a dialog and shows it.

import { button, element } from "./dom.js"

const HELP = [
  ["A", "Clean: everything the answer says is in the sources, or follows from them"],
  ["X", "Hallucinated: something it says is not, or its form breaks its contract"],
  ["U", "Unsure: you looked, and cannot tell"],
  ["Space", "Skip: it comes again at the end"],
  ["⌫", "Back to the trace before; a new verdict replaces yours"],
  ["Z", "Undo the last answer"],
  ["J K", "the next and the last sentence; 1–6 then marks it"],
  ["1–6", "kinds of error: before X, or right after it"],
  ["N", "a note; Enter ends it"],
  ["F", "flag it for the lead: it says nothing of your verdict"],
  ["G", "the labelling guide"],
  ["/", "find in the sources"],
  ["↓ ↑", "scroll the sources; with Shift the answer"],
] // prettier-ignore

function show(sheet, title, ...content) {
  if (sheet.open) return sheet.close()
  const close = button("plain", "Close", "Esc", () => sheet.close())
  sheet.replaceChildren(element("h2", "", title), ...content, close)
  sheet.setAttribute("aria-label", title)
  sheet.showModal()
}

export function keys(sheet) {
  const list = element("dl")
  for (const [key, words] of HELP) list.append(element("dt", "", key), element("dd", "", words))
  show(sheet, "Keys", list, element("p", "quiet", "Judge by the sources alone, even where you know better."))
}

/** @param {{version: number, text: string, kinds: {name: string, meaning: string}[]}} guide */
export function guide(sheet, { version, text, kinds }) {
  const list = element("dl", "kinds")
  for (const { name, meaning } of kinds) list.append(element("dt", "", name), element("dd", "", meaning))
  const words = version ? `version ${version}` : "as it came with Touchstone"
  show(sheet, "Labelling guide", element("p", "quiet", words), element("p", "guide", text), list)
}

/** `raise` takes what the flag says, or null where the flag that stands is taken back. */
export function flag(sheet, standing, raise) {
  const form = element("form")
  form.method = "dialog"
  const input = element("input")
  input.maxLength = 500
  input.value = standing ?? ""
  input.placeholder = "What should the lead look at? (optional)"
  input.setAttribute("aria-label", "What should the lead look at?")
  const submit = element("button", "go", standing === null ? "Flag it" : "Say this instead")
  form.append(input, submit)
  form.addEventListener("submit", () => raise(input.value.trim()))
  const back = standing === null ? [] : [button("plain", "Take the flag back", "", () => (sheet.close(), raise(null)))]
  show(sheet, "Flag for the lead", form, ...back)
  input.focus()
}
