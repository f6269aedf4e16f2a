// Key codes, because Streamlit's shortcuts go by them: a, x, u, space, backspace.
const ANSWERS = new Set([65, 88, 85, 32, 8])
const HELP = 72
const FIRST_KIND = 49
const LONGEST_WAIT = 3000

const plain = (event) => !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey

function typing(event) {
  return event.composedPath().some((node) => ["INPUT", "TEXTAREA", "SELECT"].includes(node.tagName))
}

function stop(event) {
  event.preventDefault()
  event.stopImmediatePropagation()
}

// Streamlit calls us again with new data without cleaning up first.
const cleanups = new WeakMap()

export default function (component) {
  const { data, parentElement } = component
  cleanups.get(parentElement)?.()
  const bar = document.querySelector(".st-key-verdicts")
  if (bar) bar.dataset.was = data.was

  let pressed = 0
  const taken = () => pressed && performance.now() - pressed < LONGEST_WAIT

  const onKey = (event) => {
    if (typing(event)) {
      if (event.keyCode === 13) setTimeout(() => document.activeElement?.blur())
      return
    }
    if (!plain(event)) return
    const dialog = document.querySelector("[role=dialog]")
    if (dialog) {
      if (ANSWERS.has(event.keyCode)) stop(event)
      if (event.keyCode === HELP) {
        stop(event)
        dialog.querySelector("button[aria-label=Close]")?.click()
      }
      return
    }
    const kind = event.keyCode - FIRST_KIND
    if (kind >= 0 && kind < 6) {
      document.querySelectorAll(".st-key-aside button")[kind]?.click()
      return
    }
    if (!ANSWERS.has(event.keyCode)) return
    const focused = document.activeElement
    if (event.keyCode === 32 && focused?.closest("button, a, summary")) {
      event.stopImmediatePropagation() // Space presses what has the focus; it is not Skip then.
      return
    }
    if (event.repeat || taken()) return stop(event)
    pressed = performance.now()
  }

  const onClick = (event) => {
    const button = event.target.closest?.(".st-key-verdicts button, .st-key-aside button")
    if (!button) return
    // Focus stays on a button that was clicked with the mouse, and Space would press it again.
    if (event.detail > 0) button.blur()
    if (!button.closest(".st-key-verdicts") || button.closest(".st-key-keys")) return
    if (taken()) return stop(event)
    pressed = performance.now()
  }

  window.addEventListener("keydown", onKey, true)
  window.addEventListener("click", onClick, true)
  const cleanup = () => {
    window.removeEventListener("keydown", onKey, true)
    window.removeEventListener("click", onClick, true)
  }
  cleanups.set(parentElement, cleanup)
  return cleanup
}
