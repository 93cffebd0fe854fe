// Command gen writes what comes from the registry of telemetry, otelx/registry: the constants and tables of internal/semconv,
// and the tables of docs/telemetry.md. With -check it writes nothing, and fails if something would change.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	root := flag.String("root", "..", "folder of the repository")
	check := flag.Bool("check", false, "write nothing; fail if something is out of date")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	r, err := read(filepath.Join(root, "otelx", "registry"))
	if err != nil {
		return err
	}
	files, err := generate(r, root)
	if err != nil {
		return err
	}
	var stale []string
	for path, fresh := range files {
		old, err := os.ReadFile(path)
		if err == nil && bytes.Equal(old, fresh) {
			continue
		}
		stale = append(stale, path)
		if check {
			continue
		}
		if err := os.WriteFile(path, fresh, 0o644); err != nil {
			return err
		}
	}
	if check && len(stale) > 0 {
		slices.Sort(stale)
		return fmt.Errorf("out of date, run make generate: %q", stale)
	}
	return nil
}

// generate returns the contents of all that is generated, by path.
func generate(r *registry, root string) (map[string][]byte, error) {
	files := map[string][]byte{}
	sources, err := code(r)
	if err != nil {
		return nil, err
	}
	for name, src := range sources {
		files[filepath.Join(root, "internal", "semconv", name)] = src
	}
	path := filepath.Join(root, "docs", "telemetry.md")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	fresh, err := page(r, string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	files[path] = []byte(fresh)
	return files, nil
}
