package touchstone_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"touchstone"
	"touchstone/internal/conformance"
)

// The conformance vectors: those of the repository, or the folder that TOUCHSTONE_VECTORS names.
func folder() string {
	if named := os.Getenv("TOUCHSTONE_VECTORS"); named != "" {
		return named
	}
	return filepath.Join("..", "..", "..", "calibrate", "thresholds", "vectors")
}

func content(t *testing.T, name string) string {
	t.Helper()
	vector, err := conformance.Load(filepath.Join(folder(), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(vector.Content())
}

func TestVectors(t *testing.T) {
	paths, _ := filepath.Glob(filepath.Join(folder(), "*.json"))
	if len(paths) < 40 {
		t.Fatalf("%d vectors in %s: the format has more", len(paths), folder())
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			for _, problem := range conformance.Unmet(path) {
				t.Error(problem)
			}
		})
	}
}

func TestNewerFormatIsRefusedWithASentence(t *testing.T) {
	newer := strings.Replace(content(t, "tiers.json"), `"touchstone_thresholds": 1`, `"touchstone_thresholds": 3`, 1)
	_, err := touchstone.Read([]byte(newer))
	if err == nil || err.Error() != "format 3 is newer than this reader (2)" {
		t.Fatal(err)
	}
}

func TestChangedFileIsRefusedByItsDigest(t *testing.T) {
	changed := strings.Replace(content(t, "tiers.json"), `"note": "`, `"note": "not `, 1)
	if _, err := touchstone.Read([]byte(changed)); err == nil || !strings.Contains(err.Error(), "digest") {
		t.Fatal(err)
	}
}

func TestLoadSaysWhereAFileIsMissing(t *testing.T) {
	if _, err := touchstone.Load(filepath.Join(t.TempDir(), "none.json")); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

func Example() {
	content, err := os.ReadFile(filepath.Join("testdata", "thresholds.json"))
	if err != nil {
		fmt.Println(err)
		return
	}
	thresholds, err := touchstone.Read(content)
	if err != nil { // keep the thresholds in use, and log the sentence
		fmt.Println(err)
		return
	}
	decision := thresholds.Decide(touchstone.Scores{"citation_grounding": 0.41}, touchstone.Review)
	fmt.Println(decision.Verdict, decision.Tier, decision.Flags)
	// Output: REVIEW page [citation_grounding]
}
