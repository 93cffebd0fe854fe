package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// mutation is one way to break the library: in a file, one piece of text becomes another.
type mutation struct {
	rule string // that it breaks
	name string // what is then wrong
	file string // from the library's root
	old  string // occurs once
	new  string

	tests []string // the packages that have to notice; if nil, the file's own
	race  bool     // under the race detector
}

// verdict is what came of a mutation.
type verdict struct {
	caughtBy string // the test; "" if none has noticed
	err      error  // it could not be tried
}

// patience is how long tests may take: a mutation may make them hang, which is a way to notice.
const patience = time.Minute

func (m mutation) packages() []string {
	if m.tests != nil {
		return m.tests
	}
	return []string{"./" + path.Dir(m.file)}
}

// try runs the tests on the broken library.
func (m mutation) try(root, dir string, number int) verdict {
	overlay, err := m.overlay(root, dir, number)
	if err != nil {
		return verdict{err: err}
	}
	for _, p := range m.packages() {
		v := test(root, p, m.race, "-overlay", overlay)
		if v.caughtBy != "" || v.err != nil {
			return v
		}
	}
	return verdict{}
}

// overlay writes the broken file, and the file that puts it in the place of the real one.
func (m mutation) overlay(root, dir string, number int) (string, error) {
	real, source, err := m.read(root)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		return "", fmt.Errorf("%s holds this %d times, must be once: %q", m.file, n, m.old)
	}
	broken := filepath.Join(dir, strconv.Itoa(number)+".go")
	if err := os.WriteFile(broken, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600); err != nil {
		return "", err
	}
	return writeOverlay(filepath.Join(dir, strconv.Itoa(number)+".json"), map[string]string{real: broken})
}

// read returns the path and the text of the file.
func (m mutation) read(root string) (real string, source []byte, err error) {
	if real, err = filepath.Abs(filepath.Join(root, filepath.FromSlash(m.file))); err != nil {
		return "", nil, err
	}
	source, err = os.ReadFile(real)
	return real, source, err
}

func writeOverlay(file string, replaced map[string]string) (string, error) {
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	return file, os.WriteFile(file, text, 0o600)
}

// unbroken returns an error unless the library as it is passes all tests that the mutations are tried on: also with its files
// read from elsewhere, which a test might notice too.
func unbroken(root, dir string, all []mutation) error {
	replaced := map[string]string{}
	for i, m := range all {
		real, source, err := m.read(root)
		if err != nil {
			return err
		}
		replaced[real] = filepath.Join(dir, "unbroken"+strconv.Itoa(i)+".go")
		if err := os.WriteFile(replaced[real], source, 0o600); err != nil {
			return err
		}
	}
	overlay, err := writeOverlay(filepath.Join(dir, "unbroken.json"), replaced)
	if err != nil {
		return err
	}
	type target struct {
		pkg  string
		race bool
	}
	var targets []target
	for _, m := range all {
		for _, p := range m.packages() {
			if t := (target{p, m.race}); !slices.Contains(targets, t) {
				targets = append(targets, t)
			}
		}
	}
	for _, t := range targets {
		v := test(root, t.pkg, t.race, "-overlay", overlay)
		if v.caughtBy != "" && v.err == nil {
			v.err = fmt.Errorf("%s fails", v.caughtBy)
		}
		if v.err != nil {
			return fmt.Errorf("before anything is broken, in %s: %w", t.pkg, v.err)
		}
	}
	return nil
}

// test runs the tests of a package up to the first that fails, which it returns.
func test(root, pkg string, race bool, args ...string) verdict {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	args = append([]string{"test", "-v", "-vet=off", "-failfast", "-count=1", "-timeout", patience.String()}, args...)
	if race {
		args = append(args, "-race")
	}
	args = append(args, pkg)
	if usesRapid(filepath.Join(root, pkg)) {
		args = append(args, "-rapid.nofailfile") // what fails here is no find to keep
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err == nil {
		return verdict{}
	}
	text := string(out)
	if strings.Contains(text, "[build failed]") || strings.Contains(text, "[setup failed]") {
		return verdict{err: errors.New("does not compile: " + text)}
	}
	return verdict{caughtBy: noticed(text)}
}

func usesRapid(dir string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go")) // the pattern is well-formed
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && strings.Contains(string(text), `"pgregory.net/rapid"`) {
			return true
		}
	}
	return false
}

var (
	failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	running = regexp.MustCompile(`(?m)^=== RUN\s+(\S+)`)
	raced   = regexp.MustCompile(`(?m)^WARNING: DATA RACE`)
)

// noticed names the test that has noticed, and how if it was not by failing.
func noticed(text string) string {
	how := ""
	switch {
	case strings.Contains(text, "panic: test timed out"):
		how = " (hangs)"
	case raced.MatchString(text):
		how = " (a data race)"
	case strings.Contains(text, "goleak: Errors on successful test run"):
		return "goleak, after the tests"
	case strings.HasPrefix(text, "panic:") || strings.Contains(text, "\npanic:"):
		how = " (a panic)"
	}
	for _, pattern := range []*regexp.Regexp{failure, running} {
		if found := pattern.FindAllStringSubmatch(text, -1); len(found) > 0 {
			return found[len(found)-1][1] + how
		}
	}
	return "the run" + how
}
