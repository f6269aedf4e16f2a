// What a key means. The letters go by what is typed, so that they are where the keyboard's layout has them.

const VERDICTS = { a: "clean", x: "hallucinated", u: "unsure" }
const ACTIONS = {
  " ": "skip", backspace: "back", z: "undo", j: "down", k: "up", n: "note", f: "flag", g: "guide", "/": "find", "?": "keys",
  escape: "leave", arrowdown: "scroll", arrowup: "scroll", pagedown: "scroll", pageup: "scroll",
} // prettier-ignore

/**
 * The action of a key press; null where the page or the browser has it.
 *
 * @param {{key: string, repeat?: boolean, ctrlKey?: boolean, metaKey?: boolean, altKey?: boolean}} press
 * @param {{typing?: boolean, onButton?: boolean, open?: boolean}} where typing in a field; focus on a button, which
 *   Space and Enter press; a sheet open above the trace, which takes only the keys that close it
 */
export function meaning(press, { typing = false, onButton = false, open = false } = {}) {
  const key = press.key.toLowerCase()
  if (press.ctrlKey || press.metaKey || press.altKey) return null
  if (key === "escape") return { do: "leave" }
  if (typing) return key === "enter" && !press.shiftKey ? { do: "leave" } : null
  if (onButton && (key === " " || key === "enter")) return null
  const action = ACTIONS[key]
  if (open) return action === "keys" || action === "guide" ? { do: "leave" } : { do: "nothing" }
  if (action === "scroll") return { do: "scroll", key, answer: Boolean(press.shiftKey) }
  if (press.shiftKey && key !== "?" && key !== "/") return null
  if (action === "down" || action === "up") return { do: action }
  if (press.repeat) return VERDICTS[key] || action ? { do: "nothing" } : null // a held key answers once
  if (VERDICTS[key]) return { do: "verdict", verdict: VERDICTS[key] }
  if (action) return { do: action }
  if (/^[1-9]$/.test(key)) return { do: "kind", place: Number(key) - 1 }
  return null
}
