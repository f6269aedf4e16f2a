// Package touchstone reads a Touchstone thresholds file and decides by it: which answers of a language model to accept,
// to have reviewed, or to reject, from the scores that hallucination detectors gave them. Standard library only.
//
// [Load] and [Read] take a file only if it is whole and unchanged (its digest), of a format that is known here, and
// possible; else the error is a [Refused], a sentence for the log. A process that runs for long should keep the
// thresholds that it has when a newer file is refused. With public keys they take only what one of them signed.
//
// [Thresholds.Decide] decides on one answer, by detectors and ensembles in their tiers. A score that is not there, NaN
// or an infinity is missing: the detector abstained, failed, or was not run. [Thresholds.DecideIn] decides by the
// thresholds of the segments that the answer is of, where the release has some. [Thresholds.Probability] maps a score to
// P(hallucinated) where the release has a map.
//
// A Thresholds value is not changed by its methods: goroutines may share one.
package touchstone
