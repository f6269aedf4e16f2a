// Between the chart and the page's script: takes what holds at the threshold to the chart, and where its handle rests to
// the script. It is drawn anew with every move, the chart is not.

export default function ({ data, setTriggerValue }) {
  const shared = (window.touchstoneThreshold ??= new EventTarget())
  shared.here = data
  shared.tell = (moved) => setTriggerValue("moved", moved)
  shared.dispatchEvent(new Event("here"))
}
