// What somebody has put together on the trace before them: kinds, spans, a note. It becomes an answer with a verdict.

/** A fresh draft, or one that begins with what stands, where somebody went back. */
export function begin(trace, kept = null) {
  if (kept && kept.pk === trace.pk) return kept
  const { standing } = trace
  return {
    pk: trace.pk,
    verdict: standing?.verdict ?? null,
    kinds: standing?.kinds ?? [],
    spans: (standing?.spans ?? []).map(([start, end, kind]) => ({ start, end, kind })),
    note: standing?.note ?? "",
    marking: false, // a span was marked or a kind chosen here: the answer is hallucinated unless another key says else
  }
}

/** A kind goes on or off. */
export function toggleKind(draft, kind) {
  const kinds = draft.kinds.includes(kind) ? draft.kinds.filter((other) => other !== kind) : [...draft.kinds, kind]
  return { ...draft, kinds }
}

/** The spans changed; marking one chooses Hallucinated. */
export function mark(draft, spans) {
  return { ...draft, spans, verdict: spans.length ? "hallucinated" : draft.verdict, marking: spans.length > 0 }
}

export const write = (draft, note) => ({ ...draft, note })

/** Whether it holds anything that would be missed. */
export const isEmpty = (draft) => !draft.note && !draft.spans.length && !draft.kinds.length

/** The answer that goes to the server. Kinds and spans go with Hallucinated alone. */
export function answer(draft, verdict, { turn, seconds, seen, guide = null }) {
  const wrong = verdict === "hallucinated"
  return {
    turn,
    pk: draft.pk,
    verdict,
    kinds: wrong ? draft.kinds : [],
    spans: wrong ? draft.spans.map(({ start, end, kind }) => [start, end, kind ?? null]) : [],
    note: draft.note.trim(),
    seconds,
    seen,
    guide,
  }
}
