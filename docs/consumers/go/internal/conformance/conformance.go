// Package conformance holds the reader to the conformance vectors of the format.
package conformance

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"

	"touchstone"
)

// Vector is a file with what a reader makes of it.
type Vector struct {
	Document  json.RawMessage `json:"document"`
	Text      string          `json:"text"`
	Refused   bool            `json:"refused"`
	VerifyKey string          `json:"verify_key"`
	Cases     []struct {
		About         string              `json:"about"`
		Scores        map[string]*float64 `json:"scores"`
		OnMissing     string              `json:"on_missing"`
		Skipped       []string            `json:"skipped"`
		Segments      map[string]*string  `json:"segments"`
		Decision      touchstone.Decision `json:"decision"`
		Probabilities map[string]float64  `json:"probabilities"`
	} `json:"cases"`
}

// Load reads a vector.
func Load(path string) (v Vector, err error) {
	content, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(content, &v)
	}
	return v, err
}

// Content is the text of the thresholds file.
func (v Vector) Content() []byte {
	if v.Document != nil {
		return v.Document
	}
	return []byte(v.Text)
}

// Unmet says in sentences what a vector expects and the reader does not do.
func Unmet(path string) (problems []string) {
	one, err := Load(path)
	if err != nil {
		return []string{err.Error()}
	}
	keys := []ed25519.PublicKey{}
	if block, _ := pem.Decode([]byte(one.VerifyKey)); block != nil {
		key, _ := x509.ParsePKIXPublicKey(block.Bytes)
		keys = append(keys, key.(ed25519.PublicKey))
	}
	thresholds, err := touchstone.Read(one.Content(), keys...)
	if refused := touchstone.Refused(""); err != nil && !(errors.As(err, &refused) && strings.Contains(err.Error(), " ")) {
		return []string{"refused without a sentence: " + err.Error()}
	}
	if err != nil && !one.Refused {
		return []string{"refused: " + err.Error()}
	}
	if err == nil && one.Refused {
		return []string{"read, but it must be refused"}
	}
	for _, each := range one.Cases {
		scores := touchstone.Scores{}
		for name, score := range each.Scores {
			scores[name] = math.NaN()
			if score != nil {
				scores[name] = *score
			}
		}
		segments := touchstone.Segments{}
		for by, segment := range each.Segments {
			if segment != nil {
				segments[by] = *segment
			}
		}
		onMissing := touchstone.Review
		if each.OnMissing != "" {
			onMissing = touchstone.OnMissing(strings.ToUpper(each.OnMissing))
		}
		if decision := thresholds.DecideIn(segments, scores, onMissing, each.Skipped...); !reflect.DeepEqual(decision, each.Decision) {
			problems = append(problems, fmt.Sprintf("%s: %+v", each.About, decision))
		}
		for name, expected := range each.Probabilities {
			if found, ok := thresholds.Probability(name, scores[name]); !ok || !(math.Abs(found-expected) < 1e-12) {
				problems = append(problems, fmt.Sprintf("%s: the probability of %s", each.About, name))
			}
		}
	}
	return problems
}
