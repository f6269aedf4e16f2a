// The words of the verdict box, and the thread between the chart and the page's script: it takes what holds at the
// threshold to the chart, and where its handle rests to the script. It is drawn anew with every move, the chart is not.

const SIGNS = { holds: "✓", open: "…", stop: "⊘" }

function element(name, attributes, ...children) {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  made.append(...children)
  return made
}

function say(root, { verdict, headline, why, strength }) {
  root.dataset.state = verdict
  const [head, tag, sentence] = root.children
  head.textContent = `${SIGNS[verdict]} ${headline}`
  tag.textContent = strength
  sentence.textContent = why
}

const heads = new WeakMap()

export default function ({ data, parentElement, setTriggerValue }) {
  const shared = (window.touchstoneThreshold ??= new EventTarget())
  shared.here = data
  shared.tell = (moved) => setTriggerValue("moved", moved)
  if (!heads.has(parentElement)) {
    const made = element("div", { class: "verdict", role: "status" },
      element("strong", {}), element("span", { class: "strength" }), element("p", {})) // prettier-ignore
    parentElement.append(made)
    const head = { made, now: data }
    heads.set(parentElement, head)
    const follow = ({ detail }) => {
      if (!made.isConnected) shared.removeEventListener("moving", follow)
      else if (detail === null || detail.name === head.now.name) say(made, detail ?? head.now.here)
    }
    shared.addEventListener("moving", follow)
  }
  const head = heads.get(parentElement)
  head.now = data
  say(head.made, data.here)
  shared.dispatchEvent(new Event("here"))
}
