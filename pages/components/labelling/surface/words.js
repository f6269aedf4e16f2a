// What the surface says in each kind of work. Nothing here knows the page.

const SAMPLE = {
  note: "Note",
  progress: "labelled so far",
  done: (size) => `All ${size} are labelled`,
  next: "Next, the detectors score the same traces; then you choose their thresholds.",
  go: { text: "Run the detectors", page: "detect" },
  conflict: ({ verdict }, mine) => `You labelled a trace in another window: it stands as ${verdict}, and here you said ${mine}.`,
}

const KINDS = {
  sample: SAMPLE,
  recheck: {
    ...SAMPLE,
    done: () => "Enough for now",
    next: "What these labels say of the threshold is on this page.",
    go: { text: "See what they say", page: "over" },
  },
  traces: {
    ...SAMPLE,
    done: (size) => (size === 1 ? "It is labelled" : SAMPLE.done(size)),
    next: "Outside any sample: it stands for no traffic.",
    go: { text: "Back to the trace", page: "over" },
  },
  disputes: {
    ...SAMPLE,
    note: "Why",
    progress: "decided so far",
    done: (size) => (size ? `All ${size} are decided` : "Nothing is disputed"),
    next: "",
    go: { text: "See how they agree now", page: "over" },
    conflict: ({ verdict, who }, mine) => `${who} decided a trace meanwhile: it stands as ${verdict}, and here you said ${mine}.`,
  },
}

/** The words of a kind of work; those of a sample where there are none of its own. */
export const wordsOf = (kind) => KINDS[kind] ?? SAMPLE

/** What a session did to the share hallucinated, as the labels told it before and tell it now; "" where that is not to
 * be told, or nothing is known. */
export function learned({ before, now }) {
  if (!now) return ""
  if (!before) return `Hallucinated in the traffic: ${now}. Nothing was known of it before this session.`
  if (before === now) return `Hallucinated in the traffic: ${now}, as before this session.`
  return `Hallucinated in the traffic: ${now}. Before this session it was ${before}.`
}
