// Command vectors holds the reader to the conformance vectors: go run ./cmd/vectors FOLDER. Exit 1 where one is not met.
package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"touchstone"
)

type vector struct {
	Document  json.RawMessage `json:"document"`
	Text      string          `json:"text"`
	Refused   bool            `json:"refused"`
	VerifyKey string          `json:"verify_key"`
	Cases     []struct {
		About         string              `json:"about"`
		Scores        map[string]*float64 `json:"scores"`
		OnMissing     string              `json:"on_missing"`
		Skipped       []string            `json:"skipped"`
		Decision      touchstone.Decision `json:"decision"`
		Probabilities map[string]float64  `json:"probabilities"`
	} `json:"cases"`
}

func main() {
	paths, _ := filepath.Glob(filepath.Join(append(os.Args, "")[1], "*.json"))
	failed := 0
	for _, path := range paths {
		for _, problem := range unmet(path) {
			failed++
			fmt.Printf("%s: %s\n", filepath.Base(path), problem)
		}
	}
	fmt.Printf("%d vectors, %d not met\n", len(paths), failed)
	if failed > 0 || len(paths) == 0 {
		os.Exit(1)
	}
}

func unmet(path string) (problems []string) {
	var one vector
	content, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(content, &one)
	}
	if err != nil {
		return []string{err.Error()}
	}
	keys := []ed25519.PublicKey{}
	if block, _ := pem.Decode([]byte(one.VerifyKey)); block != nil {
		key, _ := x509.ParsePKIXPublicKey(block.Bytes)
		keys = append(keys, key.(ed25519.PublicKey))
	}
	text := []byte(one.Text)
	if one.Document != nil {
		text = one.Document
	}
	thresholds, err := touchstone.Read(text, keys...)
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
		onMissing := touchstone.Review
		if each.OnMissing != "" {
			onMissing = touchstone.OnMissing(strings.ToUpper(each.OnMissing))
		}
		if decision := thresholds.Decide(scores, onMissing, each.Skipped...); !reflect.DeepEqual(decision, each.Decision) {
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
