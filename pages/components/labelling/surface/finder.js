// Find in the sources of the trace in sight: what is found is marked there, and counted.

import { element } from "./dom.js"
import { finds } from "./text.js"

export class Finder {
  /** `sources` gives the pane with the sources of the trace in sight, nothing where there is none. */
  constructor(sources) {
    this.sources = sources
    this.form = element("form", "finder")
    this.form.hidden = true
    this.wanted = element("input")
    this.wanted.type = "search"
    this.wanted.setAttribute("aria-label", "Find in the sources")
    this.wanted.placeholder = "Find in the sources"
    this.wanted.addEventListener("input", () => this.#find())
    this.form.addEventListener("submit", (event) => event.preventDefault())
    this.hits = element("span", "quiet")
    this.form.append(this.wanted, this.hits)
  }

  open() {
    this.form.hidden = false
    this.wanted.focus()
    this.wanted.select()
  }

  /** Goes away, unless something is looked for. */
  close() {
    if (!this.wanted.value) this.form.hidden = true
  }

  /** Another trace is in sight. */
  renew() {
    if (!this.form.hidden && this.wanted.value) this.#find()
  }

  #find() {
    const ranges = []
    const pane = this.sources()
    if (pane) {
      const walker = document.createTreeWalker(pane, NodeFilter.SHOW_TEXT)
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        for (const [start, end] of finds(node.data, this.wanted.value)) {
          const range = document.createRange()
          range.setStart(node, start)
          range.setEnd(node, end)
          ranges.push(range)
        }
      }
    }
    if (window.Highlight) CSS.highlights.set("touchstone-find", new Highlight(...ranges))
    this.hits.textContent = this.wanted.value.trim() ? `${ranges.length} found` : ""
    ranges[0]?.startContainer.parentElement.scrollIntoView({ block: "nearest" })
  }
}
