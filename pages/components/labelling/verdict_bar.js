// Key codes, because Streamlit's shortcuts go by them.
const SPACE = 32
const ANSWERS = new Set([65, 88, 85, SPACE, 8]) // a, x, u, space, backspace
const HELP = 72
const ESCAPE = 27
const ENTER = 13
const FIRST_KIND = 49
const LONGEST_WAIT = 3000

const plain = (event) => !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey

const within = (event, names) => event.composedPath().some((node) => names.includes(node.tagName))
const typing = (event) => within(event, ["INPUT", "TEXTAREA", "SELECT"])

function stop(event) {
  event.preventDefault()
  event.stopImmediatePropagation()
}

// Streamlit calls us again with new data without cleaning up first.
const cleanups = new WeakMap()
let escaped = -Infinity

export default function (component) {
  const { data, parentElement } = component
  cleanups.get(parentElement)?.()
  const bar = document.querySelector(".st-key-verdicts")
  let pressed = 0
  const taken = () => pressed && performance.now() - pressed < LONGEST_WAIT
  const take = () => {
    pressed = performance.now()
    if (bar) bar.dataset.open = "no"
  }
  if (bar) {
    bar.dataset.was = data.was
    bar.dataset.open = "yes"
  }

  const onKey = (event) => {
    if (event.keyCode === ESCAPE) escaped = performance.now()
    if (typing(event)) {
      // Enter ends the note at once: the next key is a verdict.
      if (event.keyCode === ENTER) event.target.closest?.(".st-key-aside input")?.blur()
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
    if (event.keyCode === SPACE && within(event, ["BUTTON", "A", "SUMMARY"])) {
      event.stopImmediatePropagation() // Space presses what has the focus; it is not Skip then.
      return
    }
    if (event.repeat || taken()) return stop(event)
    take()
  }

  const onClick = (event) => {
    const button = event.target.closest?.(".st-key-verdicts button, .st-key-aside button")
    if (!button) return
    // Focus stays on a button that was clicked with the mouse, and Space would press it again.
    if (event.detail > 0) button.blur()
    if (!button.closest(".st-key-verdicts") || button.closest(".st-key-keys")) return
    if (taken()) return stop(event)
    take()
  }

  window.addEventListener("keydown", onKey, true)
  // A popover closed with Escape hands the focus to its button, where Space would open it again.
  const onFocus = (event) => {
    if (performance.now() - escaped < 2000) event.target.closest?.("[data-testid=stPopoverButton]")?.blur()
  }

  window.addEventListener("click", onClick, true)
  window.addEventListener("focusin", onFocus)
  const cleanup = () => {
    window.removeEventListener("keydown", onKey, true)
    window.removeEventListener("click", onClick, true)
    window.removeEventListener("focusin", onFocus)
  }
  cleanups.set(parentElement, cleanup)
  return cleanup
}
