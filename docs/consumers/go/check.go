package touchstone

import (
	"math"
	"regexp"
	"sort"
	"strings"
	"time"
	"unicode/utf8"
)

type object = map[string]any

var (
	detectorName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:@/+-]*$`)
	ensembleName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:@/+ -]*$`)
	segmentedBy  = regexp.MustCompile(`^(operation|model|language|attributes\.(?s:.+))$`)
	digestText   = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	timeText     = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$`)
)

const (
	mostExact = 1<<53 - 1
	mostKnot  = 1e300
)

// node is a value with the path to it, for the sentence that refuses it. A key that nobody asks for is ignored.
type node struct {
	path  string
	value any
}

func (n node) is(ok bool, what string) {
	if !ok {
		refuse("%s must be %s", n.path, what)
	}
}

func (n node) object() object {
	made, ok := n.value.(object)
	n.is(ok, "an object")
	return made
}

func (n node) field(key string) node {
	value, ok := n.object()[key]
	if !ok {
		refuse("%s.%s is missing", n.path, key)
	}
	return node{n.path + "." + key, value}
}

// optional gives a field that may be left out.
func (n node) optional(key string) (node, bool) {
	value, ok := n.object()[key]
	return node{n.path + "." + key, value}, ok
}

// each calls check for every entry, by name.
func (n node) each(check func(name string, entry node)) {
	for _, name := range names(n.object()) {
		check(name, node{n.path + "." + name, n.object()[name]})
	}
}

func (n node) list() []node {
	values, ok := n.value.([]any)
	n.is(ok, "a list")
	nodes := make([]node, len(values))
	for i, value := range values {
		nodes[i] = node{n.path + "[]", value}
	}
	return nodes
}

func (n node) text(least, most int) string {
	text, ok := n.value.(string)
	n.is(ok && least <= utf8.RuneCountInString(text) && utf8.RuneCountInString(text) <= most, "a text of the right length")
	return text
}

func (n node) anyText() string { return n.text(0, math.MaxInt) }

func (n node) oneOf(words ...string) string {
	for _, word := range words {
		if n.value == word {
			return word
		}
	}
	refuse("%s must be one of %s", n.path, strings.Join(words, ", "))
	return ""
}

func (n node) matches(pattern *regexp.Regexp) string {
	text := n.anyText()
	n.is(pattern.MatchString(text), "spelled otherwise")
	return text
}

func (n node) number() float64 {
	number, ok := n.value.(float64)
	n.is(ok, "a number")
	return number
}

func (n node) between(low, high float64) float64 {
	number := n.number()
	n.is(low <= number && number <= high, "in its range")
	return number
}

func (n node) open() float64 {
	number := n.number()
	n.is(0 < number && number < 1, "above 0 and below 1")
	return number
}

func (n node) whole(least float64) float64 {
	number := n.between(least, mostExact)
	n.is(number == math.Trunc(number), "a whole number")
	return number
}

func (n node) time() string {
	text := n.matches(timeText)
	_, err := time.Parse(time.RFC3339, text)
	n.is(err == nil && text >= "0001", "a time")
	return text
}

func names(entries object) []string {
	made := make([]string, 0, len(entries))
	for name := range entries {
		made = append(made, name)
	}
	sort.Strings(made)
	return made
}

// check refuses a document that must not be used, but for its digest.
func check(document node) {
	version := document.field("version").whole(1)
	document.field("released_at").time()
	document.field("released_by").text(1, 200)
	document.field("note").text(0, 100_000)
	if replaces := document.field("replaces"); replaces.value != nil && replaces.whole(1) >= version {
		refuse("replaces is not before version")
	}
	document.field("digest").matches(digestText)
	detectors, format, segmented := document.field("detectors"), document.field("touchstone_thresholds").number(), false
	detectors.each(func(name string, entry node) {
		node{entry.path, name}.matches(detectorName)
		node{entry.path, name}.text(1, 100)
		checkDetector(entry)
		_, apart := entry.optional("segments")
		entry.is(!apart || format >= 2, "without segments in format 1")
		segmented = segmented || apart
	})
	document.is(format != 2 || segmented, "of format 1 where no detector has segments")
	if ensembles, ok := document.optional("ensembles"); ok {
		ensembles.is(len(ensembles.object()) > 0, "left out, or hold something")
		ensembles.each(func(name string, entry node) {
			node{entry.path, name}.matches(ensembleName)
			node{entry.path, name}.text(1, 100)
			_, isDetector := detectors.object()[name]
			entry.is(!isDetector, "named as no detector is")
			checkEnsemble(entry, detectors)
		})
	}
	checkData(document.field("data"))
	document.field("baselines").each(func(_ string, model node) {
		model.each(func(name string, statistics node) {
			node{statistics.path, name}.matches(detectorName)
			node{statistics.path, name}.text(1, 100)
			statistics.each(func(_ string, value node) {
				switch value.value.(type) {
				case nil, float64, string:
				default:
					value.is(false, "a number, a text or null")
				}
			})
		})
	})
}

func checkDetector(entry node) {
	entry.field("version").text(1, math.MaxInt)
	entry.field("params").object()
	entry.field("revision").anyText()
	flagWhen := entry.field("flag_when").oneOf("above", "below")
	entry.field("threshold").number()
	entry.field("tier").oneOf("page", "signal", "off")
	entry.field("policy").text(1, math.MaxInt)
	entry.field("coverage").between(0, 1)
	_, ok := entry.field("feasible").value.(bool)
	entry.is(ok, "feasible or not, true or false")
	checkMetrics(entry.field("metrics"), "precision", "recall", "fpr", "flag_rate")
	if sampling, ok := entry.optional("sampling"); ok {
		rate, only := sampling.field("rate").between(0, 1), sampling.field("only_when")
		sampling.is(rate > 0, "of some traces")
		only.each(func(_ string, value node) { value.anyText() })
		sampling.is(rate < 1 || len(only.object()) > 0, "left out where it is of all traces")
	}
	checkGuarantee(entry)
	if segments, ok := entry.optional("segments"); ok {
		segments.field("by").matches(segmentedBy)
		thresholds := segments.field("thresholds")
		thresholds.is(len(thresholds.object()) > 0, "left out, or hold something")
		thresholds.each(func(name string, own node) {
			own.is(name != "", "of a segment with a name")
			own.field("threshold").number()
			checkCounts(own)
			checkInterval(own.field("precision"))
			checkInterval(own.field("recall"))
			checkGuarantee(own)
		})
	}
	if probability, ok := entry.optional("probability_map"); ok {
		probability.field("kind").oneOf("ridge_logistic")
		probability.field("centre").number()
		probability.is(probability.field("spread").number() > 0, "of a spread above 0")
		coefficients := probability.field("coefficients").list()
		probability.is(len(coefficients) == 3, "of three coefficients")
		for _, coefficient := range coefficients {
			coefficient.number()
		}
		probability.field("flag_when").oneOf(flagWhen)
		checkCounts(probability)
		checkInterval(probability.field("brier"))
		checkInterval(probability.field("ece"))
	}
}

func checkGuarantee(entry node) {
	guarantee, ok := entry.optional("guarantee")
	if !ok {
		return
	}
	guarantee.field("strength").oneOf("bounded", "certified")
	guarantee.field("confidence").open()
	target, bound := guarantee.field("target").open(), guarantee.field("bound").between(0, 1)
	labels, hallucinated := guarantee.field("labels").whole(0), guarantee.field("hallucinated").whole(0)
	if sample := guarantee.field("sample"); sample.value != nil {
		sample.anyText()
	}
	guarantee.is(hallucinated <= labels && bound >= target, "possible")
}

func checkMetrics(metrics node, intervals ...string) {
	for _, name := range intervals {
		checkInterval(metrics.field(name))
	}
	checkCounts(metrics)
	metrics.field("confidence").open()
}

func checkCounts(part node) {
	n, positives := part.field("n").whole(0), part.field("positives").whole(0)
	part.is(positives <= n, "of no more positives than n")
}

func checkInterval(interval node) {
	for _, end := range []string{"value", "low", "high"} {
		if share := interval.field(end); share.value != nil {
			share.between(0, 1)
		}
	}
	low, hasLow := interval.field("low").value.(float64)
	high, hasHigh := interval.field("high").value.(float64)
	interval.is(!hasLow || !hasHigh || low <= high, "of a low not above its high")
}

func checkData(data node) {
	for _, name := range []string{"sample", "design"} {
		if text := data.field(name); text.value != nil {
			text.anyText()
		}
	}
	data.field("label_set_digest").matches(digestText)
	checkCounts(data)
	if window := data.field("window"); window.value != nil {
		ends := []string{"", ""}
		for i, end := range []string{"since", "until"} {
			if moment := window.field(end); moment.value != nil {
				ends[i] = moment.time()
			}
		}
		window.is(ends[0] == "" || ends[1] == "" || ends[0] <= ends[1], "ended after it began")
	}
	for _, model := range data.field("models").list() {
		model.anyText()
	}
	if samples, ok := data.optional("samples"); ok {
		samples.is(len(samples.object()) > 0, "left out, or hold something")
		samples.each(func(_ string, sample node) {
			sample.field("design").text(1, math.MaxInt)
			if by := sample.field("by"); by.value != nil {
				by.anyText()
			}
			possible := sample.field("size").whole(0) <= sample.field("pool").whole(0)
			sample.field("strata").each(func(_ string, stratum node) {
				sizes := stratum.list()
				stratum.is(len(sizes) == 2, "[traces in it, traces drawn]")
				possible = sizes[1].whole(0) <= sizes[0].whole(0) && possible
			})
			sample.is(possible, "of no more traces than there are")
		})
	}
}

func checkEnsemble(entry, detectors node) {
	reads := map[string]string{}
	checkRule(entry.field("rule"), func(name, flagWhen string) {
		detector, ok := detectors.object()[name].(object)
		entry.is(ok && detector["flag_when"] == flagWhen, "of detectors of this file, flagging as they do")
		reads[name] = flagWhen
	})
	members := entry.field("members").list()
	entry.is(len(members) == len(reads) && len(reads) > 0, "of the members that its rule reads")
	for i, member := range members {
		_, ok := reads[member.anyText()]
		entry.is(ok && (i == 0 || members[i-1].value.(string) < member.value.(string)), "of sorted members")
	}
	cuts := entry.field("cuts")
	for _, tier := range []string{"page", "signal"} {
		if cut := cuts.field(tier); cut.value != nil {
			cut.number()
		}
	}
	page, hasPage := cuts.field("page").value.(float64)
	signal, hasSignal := cuts.field("signal").value.(float64)
	cuts.is(!hasPage || !hasSignal || page >= signal, "of a page not below its signal")
	checkMetrics(entry.field("metrics"), "precision", "recall", "flag_rate")
	entry.is(entry.field("budget").between(0, 1) > 0, "of a budget above 0")
}

// checkRule calls reads for every detector that the rule reads.
func checkRule(rule node, reads func(name, flagWhen string)) {
	form := rule.field("form").oneOf("vote", "fixed", "weighted", "logistic", "cascade")
	parts := 0
	standing := func(name string, entry node) {
		parts++
		node{entry.path, name}.matches(detectorName)
		reads(name, checkStanding(entry))
	}
	switch form {
	case "vote":
		rule.field("standings").each(standing)
		rule.is(rule.field("k").whole(1) <= float64(parts), "of no more votes than members")
	case "fixed":
		rule.field("thresholds").each(func(name string, entry node) {
			parts++
			pair := entry.list()
			entry.is(len(pair) == 2, "[flag_when, threshold]")
			pair[1].number()
			reads(name, pair[0].oneOf("above", "below"))
		})
		rule.is(rule.field("k").whole(1) <= float64(parts), "of no more votes than members")
	case "weighted":
		rule.field("standings").each(standing)
		weights, some := rule.field("weights"), false
		weights.each(func(name string, weight node) {
			_, ok := rule.field("standings").object()[name]
			weight.is(ok, "of a detector of the standings")
			some = weight.number() != 0 || some
		})
		weights.is(len(weights.object()) == parts && some, "of every standing, and not all 0")
	case "logistic":
		rule.field("intercept").number()
		rule.field("inputs").each(func(name string, input node) {
			for _, field := range []string{"centre", "spread", "slope", "missing"} {
				input.field(field).number()
			}
			input.is(input.field("spread").number() > 0, "of a spread above 0")
			reads(name, input.field("flag_when").oneOf("above", "below"))
		})
	case "cascade":
		filter := rule.field("filter")
		filter.field("form").oneOf("weighted")
		checkRule(filter, reads)
		if at := rule.field("pass_at"); at.value != nil {
			at.number()
		}
		reads(rule.field("expensive").matches(detectorName), checkStanding(rule.field("standing")))
	}
}

func checkStanding(standing node) string {
	knots := standing.field("knots").list()
	for i, knot := range knots {
		knot.between(-mostKnot, mostKnot)
		standing.is(i == 0 || knots[i-1].number() < knot.number(), "of knots that ascend")
	}
	above, normals := standing.field("above").list(), standing.field("normals").list()
	for _, share := range above {
		share.between(0, 1)
	}
	for _, normal := range normals {
		normal.between(-mostKnot, mostKnot)
	}
	standing.is(len(above) == len(knots) && len(normals) == len(knots), "of lists of one length")
	return standing.field("flag_when").oneOf("above", "below")
}
