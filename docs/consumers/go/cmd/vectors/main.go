// Command vectors holds the reader to the conformance vectors: go run ./cmd/vectors FOLDER. Exit 1 where one is not met.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"touchstone/internal/conformance"
)

func main() {
	paths, _ := filepath.Glob(filepath.Join(append(os.Args, "")[1], "*.json"))
	failed := 0
	for _, path := range paths {
		for _, problem := range conformance.Unmet(path) {
			failed++
			fmt.Printf("%s: %s\n", filepath.Base(path), problem)
		}
	}
	fmt.Printf("%d vectors, %d not met\n", len(paths), failed)
	if failed > 0 || len(paths) == 0 {
		os.Exit(1)
	}
}
