// Making elements. Text reaches the page through textContent alone; nothing here reads HTML.

export function element(name, className = "", text) {
  const made = document.createElement(name)
  if (className) made.className = className
  if (text !== undefined && text !== null) made.textContent = text
  return made
}

export function button(className, text, key, press) {
  const made = element("button", className)
  made.type = "button"
  made.append(element("span", "", text))
  if (key) made.append(" ", element("kbd", "", key))
  made.addEventListener("click", (event) => {
    if (event.detail > 0) made.blur() // Space would press again what was clicked
    press(event)
  })
  return made
}

/** Pieces that the server has cut: texts that nobody marks. */
export function filled(parent, segments) {
  for (const segment of segments) {
    if (segment.u !== undefined) parent.append(chip(segment.u, segment.n))
    else if (segment.k) parent.append(element("span", segment.k.join(" "), segment.t))
    else parent.append(segment.t)
  }
  return parent
}

export function chip(name, count) {
  const made = element("span", "chip", count > 1 ? `${name} ×${count}` : name)
  made.title = "a character that acts without being seen"
  return made
}

export function block(segments, className = "text") {
  const made = element("div", className)
  made.dir = "auto"
  return filled(made, segments)
}
