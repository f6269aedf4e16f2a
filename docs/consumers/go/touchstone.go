package touchstone

// Written from docs/reference/thresholds-file.md, section by section: json.go has the text and its canonical form,
// check.go what must be refused, rules.go the score of an ensemble.

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"sort"
)

// Format is the newest format that this reader knows.
const Format = 2

const largest = 16 << 20

// Refused is the error for a file that must not be used: a sentence for the log.
type Refused string

func (r Refused) Error() string { return string(r) }

// refuse ends Read: panics are not let out of this package.
func refuse(sentence string, values ...any) { panic(Refused(fmt.Sprintf(sentence, values...))) }

// Thresholds is a release that may be used.
type Thresholds struct {
	Version  int
	document object
}

// Load reads a release from a file. With keys, it must be signed by one of them.
func Load(path string, keys ...ed25519.PublicKey) (*Thresholds, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Read(content, keys...)
}

// Read reads a release from the bytes of a file. With keys, it must be signed by one of them.
func Read(content []byte, keys ...ed25519.PublicKey) (thresholds *Thresholds, err error) {
	defer func() {
		switch problem := recover().(type) {
		case nil:
		case Refused:
			thresholds, err = nil, problem
		default:
			panic(problem)
		}
	}()
	if len(content) > largest {
		refuse("larger than 16 MB")
	}
	document, isObject := parse(content).(object)
	format, isNumber := document["touchstone_thresholds"].(float64)
	if !isObject || !isNumber || format < 1 || format != math.Trunc(format) {
		refuse("this is not a thresholds file")
	}
	if format > Format {
		refuse("format %v is newer than this reader (%d)", format, Format)
	}
	check(node{"the file", document})
	sum := sha256.Sum256([]byte(canonical(without(document, "digest"))))
	if document["digest"] != "sha256:"+hex.EncodeToString(sum[:]) {
		refuse("changed after release: its digest does not match its content")
	}
	if len(keys) > 0 {
		checkSignature(document, keys)
	}
	return &Thresholds{int(document["version"].(float64)), document}, nil
}

func without(document object, left ...string) object {
	rest := object{}
	for key, value := range document {
		rest[key] = value
	}
	for _, key := range left {
		delete(rest, key)
	}
	return rest
}

func checkSignature(document object, keys []ed25519.PublicKey) {
	signature, _ := document["x-signature"].(object)
	text, _ := signature["value"].(string)
	value, err := base64.StdEncoding.DecodeString(text)
	if signature["algorithm"] != "ed25519" || err != nil {
		refuse("not signed as it must be here")
	}
	content := []byte(canonical(without(document, "digest", "x-signature")))
	for _, key := range keys {
		if ed25519.Verify(key, content, value) {
			return
		}
	}
	refuse("its signature is not by a key that is trusted here, or it was changed after it was signed")
}

// Decision is what a release says of one answer. Flags has detectors before ensembles, each by name.
type Decision struct {
	Flags    []string `json:"flags"`
	Tier     string   `json:"tier"`
	Verdict  string   `json:"verdict"`
	Version  int      `json:"version"`
	Scored   []string `json:"scored"`
	Missing  []string `json:"missing"`
	Unknown  []string `json:"unknown"`
	Unscored bool     `json:"unscored"`
}

// Scores are of one answer, by detector; NaN and infinities, like no entry, where a detector could not score.
type Scores = map[string]float64

// OnMissing is the verdict on an answer of which nothing could be scored.
type OnMissing string

// The verdicts to choose from.
const (
	Review OnMissing = "REVIEW"
	Accept OnMissing = "ACCEPT"
	Reject OnMissing = "REJECT"
)

// Segments are those that an answer is of, by what tells them apart: "operation", "model", "language" or
// "attributes.NAME". Without an entry, or with one that a detector does not have, its common threshold decides.
type Segments = map[string]string

// Decide decides on one answer, by the detectors' common thresholds. Skipped names those that were not to score it.
func (t *Thresholds) Decide(scores Scores, onMissing OnMissing, skipped ...string) Decision {
	return t.DecideIn(nil, scores, onMissing, skipped...)
}

// DecideIn decides on one answer by the thresholds of the segments that it is of.
func (t *Thresholds) DecideIn(segments Segments, scores Scores, onMissing OnMissing, skipped ...string) Decision {
	decision := Decision{[]string{}, "off", "", t.Version, []string{}, []string{}, []string{}, false}
	detectors, ensembles := t.part("detectors"), t.part("ensembles")
	members := map[string]bool{}
	for name, entry := range ensembles {
		if cutsOf(entry) == nil {
			delete(ensembles, name)
		}
		for _, member := range entry.(object)["members"].([]any) {
			members[member.(string)] = members[member.(string)] || cutsOf(entry) != nil
		}
	}
	scored := Scores{}
	flag := func(name, tier string) {
		decision.Flags = append(decision.Flags, name)
		if decision.Tier != "page" {
			decision.Tier = tier
		}
	}
	for _, name := range names(detectors) {
		entry := detectors[name].(object)
		if entry["tier"] == "off" && !members[name] {
			continue
		}
		score, ok := scores[name]
		if !ok || !isFinite(score) {
			decision.Missing = append(decision.Missing, name)
			continue
		}
		scored[name] = score
		decision.Scored = append(decision.Scored, name)
		if entry["tier"] != "off" && flags(score, entry["flag_when"], thresholdIn(segments, entry)) {
			flag(name, entry["tier"].(string))
		}
	}
	for _, name := range names(ensembles) {
		if tier := tierOf(ensembles[name].(object), scored); tier != "" {
			flag(name, tier)
		}
	}
	for name := range scores {
		if _, ok := detectors[name]; !ok {
			decision.Unknown = append(decision.Unknown, name)
		}
	}
	sort.Strings(decision.Unknown)
	decision.Verdict = []string{"ACCEPT", "REVIEW", "REJECT"}[least(len(decision.Flags), 2)]
	if decision.Unscored = len(scored) == 0 && owes(decision.Missing, skipped); decision.Unscored {
		decision.Verdict = string(onMissing)
	}
	return decision
}

func thresholdIn(segments Segments, entry object) float64 {
	apart, _ := entry["segments"].(object)
	if by, ok := apart["by"].(string); ok {
		if segment, ok := segments[by]; ok {
			if own, ok := apart["thresholds"].(object)[segment].(object); ok {
				return own["threshold"].(float64)
			}
		}
	}
	return entry["threshold"].(float64)
}

// Probability is P(hallucinated) that the detector's map gives to a score; false where it has no map, or no score.
func (t *Thresholds) Probability(detector string, score float64) (float64, bool) {
	entry, _ := t.part("detectors")[detector].(object)
	fitted, ok := entry["probability_map"].(object)
	if !ok || !isFinite(score) {
		return 0, false
	}
	z := (score - fitted["centre"].(float64)) / fitted["spread"].(float64)
	if fitted["flag_when"] == "below" {
		z = -z
	}
	z = math.Max(-1e6, math.Min(1e6, z))
	b := fitted["coefficients"].([]any)
	hinge := math.Max(z, 0)
	return expit(b[0].(float64) + b[1].(float64)*z + b[2].(float64)*hinge*hinge/2), true
}

// part is a copy of an object of the document, empty where it is left out.
func (t *Thresholds) part(name string) object {
	part, _ := t.document[name].(object)
	return without(part)
}

func isFinite(score float64) bool {
	return !math.IsNaN(score) && !math.IsInf(score, 0)
}

func owes(missing, skipped []string) bool {
	aside := map[string]bool{}
	for _, name := range skipped {
		aside[name] = true
	}
	for _, name := range missing {
		if !aside[name] {
			return true
		}
	}
	return false
}

func least(one, other int) int {
	if one < other {
		return one
	}
	return other
}
