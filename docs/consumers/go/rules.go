package touchstone

import (
	"math"
	"sort"
)

const slack = 1e-12 // two machines' arithmetic differs in the last digits

func flags(score float64, flagWhen any, threshold float64) bool {
	if flagWhen == "above" {
		return score >= threshold
	}
	return score <= threshold
}

func reaches(score, cut float64) bool { return score >= cut-slack }

func expit(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + math.Exp(-x))
	}
	return math.Exp(x) / (1 + math.Exp(x))
}

// cutsOf gives the cuts of an ensemble, nil where it has none.
func cutsOf(entry any) object {
	cuts := entry.(object)["cuts"].(object)
	if cuts["page"] == nil && cuts["signal"] == nil {
		return nil
	}
	return cuts
}

// tierOf is the tier in which an ensemble flags, "" if it does not.
func tierOf(entry object, scored Scores) string {
	hasScore := false
	for _, member := range entry["members"].([]any) {
		_, ok := scored[member.(string)]
		hasScore = hasScore || ok
	}
	if !hasScore {
		return ""
	}
	score := scoreOf(entry["rule"].(object), scored)
	for _, tier := range []string{"page", "signal"} {
		if cut, ok := cutsOf(entry)[tier].(float64); ok && reaches(score, cut) {
			return tier
		}
	}
	return ""
}

// scoreOf is the score of a rule: higher is more suspicious.
func scoreOf(rule object, scored Scores) float64 {
	switch rule["form"] {
	case "vote":
		suspicions := []float64{}
		for name, standing := range rule["standings"].(object) {
			suspicions = append(suspicions, suspicion(standing.(object), name, scored))
		}
		sort.Float64s(suspicions)
		return suspicions[len(suspicions)-int(rule["k"].(float64))]
	case "fixed":
		votes := 0.0
		for name, pair := range rule["thresholds"].(object) {
			score, ok := scored[name]
			if ok && flags(score, pair.([]any)[0], pair.([]any)[1].(float64)) {
				votes++
			}
		}
		return votes
	case "weighted":
		sum, total := 0.0, 0.0
		weights := rule["weights"].(object)
		for _, name := range names(weights) {
			weight := weights[name].(float64)
			_, normal := placeOf(rule["standings"].(object)[name].(object), name, scored)
			sum += weight * normal
			total += math.Abs(weight)
		}
		return sum / total
	case "logistic":
		sum := rule["intercept"].(float64)
		inputs := rule["inputs"].(object)
		for _, name := range names(inputs) {
			sum += logOdds(inputs[name].(object), name, scored)
		}
		return expit(sum)
	}
	return cascade(rule, scored)
}

func cascade(rule object, scored Scores) float64 {
	first := scoreOf(rule["filter"].(object), scored)
	expensive := rule["expensive"].(string)
	at, isCut := rule["pass_at"].(float64)
	if _, ok := finite(expensive, scored); ok && (!isCut || reaches(first, at)) {
		return 1 + suspicion(rule["standing"].(object), expensive, scored)
	}
	return expit(first)
}

func logOdds(input object, name string, scored Scores) float64 {
	score, ok := finite(name, scored)
	if !ok {
		return input["missing"].(float64)
	}
	z := (score - input["centre"].(float64)) / input["spread"].(float64)
	if input["flag_when"] == "below" {
		z = -z
	}
	return input["slope"].(float64) * z
}

func finite(name string, scored Scores) (float64, bool) {
	score, ok := scored[name]
	return score, ok && isFinite(score)
}

func suspicion(standing object, name string, scored Scores) float64 {
	made, _ := placeOf(standing, name, scored)
	return made
}

// placeOf says where a detector's score stands in the traffic: its suspicion and its normal, both 0 where it is missing.
func placeOf(standing object, name string, scored Scores) (float64, float64) {
	score, ok := finite(name, scored)
	knots := standing["knots"].([]any)
	if !ok || len(knots) == 0 {
		return 0, 0
	}
	if standing["flag_when"] == "below" {
		score = -score
	}
	return 1 - height(knots, standing["above"].([]any), score), height(knots, standing["normals"].([]any), score)
}

// height is that of a list at x, between its knots on a straight line.
func height(knots, list []any, x float64) float64 {
	at := func(values []any, i int) float64 { return values[i].(float64) }
	last := len(knots) - 1
	if x <= at(knots, 0) {
		return at(list, 0)
	}
	if x >= at(knots, last) {
		return at(list, last)
	}
	i := sort.Search(last, func(i int) bool { return at(knots, i+1) > x })
	return at(list, i) + (x-at(knots, i))/(at(knots, i+1)-at(knots, i))*(at(list, i+1)-at(list, i))
}
