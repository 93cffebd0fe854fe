// Package docs checks what the documentation says against the code: links lead somewhere, diagrams can be drawn, and code is
// quoted from examples that compile and run.
//
// A line <!-- example: FILE FUNC --> says where the Go block after it comes from; go test ./internal/docs -update writes it
// anew. A block after <!-- sketch --> is not quoted, but has to parse.
package docs

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the quoted examples into the pages")

const root = "../.."

func pages(t *testing.T) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "bin" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			paths = append(paths, path)
		}
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	return paths
}

var (
	link    = regexp.MustCompile(`!?\[[^\]]*\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	code    = regexp.MustCompile("(?s)```.*?```")
	slugCut = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

func slugs(text string) map[string]bool {
	set := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
		set[strings.ReplaceAll(slugCut.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return set
}

func TestLinksLeadSomewhere(t *testing.T) {
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			to := page
			if target != "" {
				to = filepath.Join(filepath.Dir(page), target)
			}
			body, err := os.ReadFile(to)
			if info, statErr := os.Stat(to); statErr == nil && info.IsDir() {
				continue
			}
			if assert.NoError(t, err, "%s links to %s", page, m[1]) && anchor != "" && filepath.Ext(to) == ".md" {
				assert.True(t, slugs(string(body))[anchor], "%s links to %s, which has no such heading", page, m[1])
			}
		}
	}
}

var (
	diagram = regexp.MustCompile("(?s)```mermaid\n(.*?)```")
	spoils  = regexp.MustCompile(`(?m).*;.*|^\s*(call|click|class|default|end|graph|href|style|subgraph)\s+[-=<].*|.*>\s*(call|click|class|default|end|graph|href|style|subgraph)\s*$`)
)

// A semicolon ends a statement, in the text of a message too, and some words cannot be nodes. With either of them a page shows
// an error where its diagram should be.
func TestDiagramsCanBeDrawn(t *testing.T) {
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range diagram.FindAllStringSubmatch(string(text), -1) {
			assert.Empty(t, spoils.FindAllString(m[1], -1), "%s: Mermaid cannot read this", page)
		}
	}
}

var block = regexp.MustCompile("(?m)^(<!-- (example|sketch)(?:: (\\S+) (\\S+))? -->\n)?```go\n((?s:.*?))^```$")

func TestCodeIsQuotedFromExamples(t *testing.T) {
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		fresh := block.ReplaceAllStringFunc(string(text), func(found string) string {
			m := block.FindStringSubmatch(found)
			switch m[2] {
			case "example":
				quoted, err := quote(filepath.Join(root, m[3]), m[4])
				if err != nil {
					t.Errorf("%s: %v", page, err)
					return found
				}
				if !*update {
					assert.Equal(t, quoted, m[5], "%s quotes %s of %s; write it anew with go test ./internal/docs -update", page, m[4], m[3])
				}
				return m[1] + "```go\n" + quoted + "```"
			case "sketch":
				_, err := parser.ParseFile(token.NewFileSet(), page, "package p\nfunc _() {\n"+m[5]+"}\n", 0)
				if err != nil {
					_, err = parser.ParseFile(token.NewFileSet(), page, "package p\n"+m[5], 0)
				}
				if err != nil {
					t.Errorf("%s: %v", page, err)
				}
			default:
				t.Errorf("%s: a Go block needs a line <!-- example: FILE FUNC --> or <!-- sketch --> before it:\n%s", page, m[5])
			}
			return found
		})
		if *update && fresh != string(text) {
			require.NoError(t, os.WriteFile(page, []byte(fresh), 0o644))
		}
	}
}

// quote returns the body of a function, without its Output comment. FUNC may be * for a whole file's declarations.
func quote(file, name string) (string, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, src, parser.ParseComments)
	if err != nil {
		return "", err
	}
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != name {
			continue
		}
		body := src[set.Position(f.Body.Lbrace).Offset+1 : set.Position(f.Body.Rbrace).Offset]
		if i := regexp.MustCompile(`(?mi)^\s*// (unordered )?output:`).FindIndex(body); i != nil {
			body = body[:i[0]]
		}
		body = bytes.Trim(body, "\n")
		body, err := format.Source(append(body, '\n'))
		if err != nil {
			return "", err
		}
		lines := strings.Split(strings.TrimRight(string(body), "\n\t "), "\n")
		for i := range lines {
			lines[i] = strings.TrimPrefix(lines[i], "\t")
		}
		return strings.Join(lines, "\n") + "\n", nil
	}
	return "", fmt.Errorf("%s has no function %s", file, name)
}
