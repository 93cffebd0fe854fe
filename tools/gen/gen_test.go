package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const fine = `
file_format: definition/2
attributes:
  - {key: switchgear.policy.name, type: string, brief: Its name., stability: development}
  - key: switchgear.circuit_breaker.state
    type: {members: [{id: half_open, value: half_open}, {id: open, value: open}]}
    brief: Its state.
    stability: development
    annotations: {switchgear: {go_prefix: State}}
metrics:
  - name: switchgear.circuit_breaker.late_results
    instrument: counter
    unit: "{call}"
    brief: Late ones.
    stability: development
    annotations: {code_generation: {metric_value_type: int}, switchgear: {observable: true}}
    attributes:
      - {ref: switchgear.policy.name, requirement_level: required}
      - ref: switchgear.circuit_breaker.state
        requirement_level: {conditionally_required: it has one}
        annotations: {switchgear: {later: [open]}}
events:
  - name: switchgear.circuit_breaker.rejected
    brief: It refused a call.
    stability: development
    annotations: {switchgear: {severity: DEBUG, severity_of: {switchgear.circuit_breaker.state: {open: WARN}}}}
    attributes:
      - {ref: switchgear.circuit_breaker.state, requirement_level: required}
`

func parse(t *testing.T, text string) (*registry, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "r.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return read(dir)
}

func TestCodeSaysWhatTheRegistrySays(t *testing.T) {
	r, err := parse(t, fine)
	if err != nil {
		t.Fatal(err)
	}
	files, err := code(r)
	if err != nil {
		t.Fatal(err)
	}
	for name, wants := range map[string][]string{
		"names.go": {
			`BreakerState = "switchgear.circuit_breaker.state"`, `StateHalfOpen = "half_open"`,
			`BreakerLateResults = "switchgear.circuit_breaker.late_results"`, `EventBreakerRejected = "switchgear.circuit_breaker.rejected"`,
		},
		"metrics.go": {
			`Name: BreakerLateResults,`, `Instrument: ObservableCounter,`, `Description: "Late ones.",`, `NameKey: PolicyName,`,
			`{Key: BreakerState, Values: []string{"half_open", "open"}, Later: []string{"open"}, Optional: "it has one"},`,
		},
		"events.go": {`Severity: slog.LevelDebug,`, `SeverityBy: BreakerState,`, `SeverityOf: map[string]slog.Level{"open": slog.LevelWarn},`},
	} {
		got := strings.Join(strings.Fields(string(files[name])), " ")
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %s:\n%s", name, want, got)
			}
		}
	}
}

func TestFaultsOfTheRegistryAreNamed(t *testing.T) {
	for _, c := range []struct{ replace, with, want string }{
		{"definition/2", "definition/1", `file_format is "definition/1"`},
		{"unit: ", "units: ", "field units not found"},
		{"instrument: counter", "instrument: gauge", "no code for an instrument gauge"},
		{"observable: true", "observable: false", "no code for an instrument counter, observable: false"},
		{`"{call}"`, "s", "seconds are double"},
		{"brief: Late ones.", "brief: Late ones", `brief "Late ones" is not a sentence`},
		{"- {ref: switchgear.policy.name", "- {ref: switchgear.policy", "there is no attribute switchgear.policy"},
		{"- {ref: switchgear.policy.name, requirement_level: required}", "- {ref_group: nobody}", "there is no attribute group nobody"},
		{"later: [open]", "later: [shut]", "switchgear.circuit_breaker.state has no value shut"},
		{"go_prefix: State", "terminal: false", "has values but no go_prefix"},
		{"severity: DEBUG", "severity: LOUD", `severity is "LOUD"`},
		{"{open: WARN}", "{shut: WARN}", "has no value shut"},
		{"name: switchgear.circuit_breaker.rejected\n    brief: It refused a call.\n    stability: development", "name: x\n    brief: It refused a call.", "event x has no stability"},
		{"requirement_level: required}\n      - ref", "requirement_level: recommended}\n      - ref", "requirement_level is recommended"},
	} {
		if !strings.Contains(fine, c.replace) {
			t.Fatalf("the case replaces nothing: %s", c.replace)
		}
		_, err := parse(t, strings.Replace(fine, c.replace, c.with, 1))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("with %q: got %v, want %q in it", c.with, err, c.want)
		}
	}
}

func TestTwoThingsOfOneGoNameAreRefused(t *testing.T) {
	r, err := parse(t, strings.Replace(fine, "key: switchgear.policy.name, type: string", "key: switchgear.policy.name, type: string, annotations: {switchgear: {go_name: BreakerState}}", 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := code(r); err == nil || !strings.Contains(err.Error(), "BreakerState would be both") {
		t.Errorf("got %v", err)
	}
}

func TestOnlyTheMarkedPartsOfThePageAreWritten(t *testing.T) {
	r, err := parse(t, fine)
	if err != nil {
		t.Fatal(err)
	}
	const marks = "by hand\n<!-- generated: metrics -->\nold\n<!-- /generated -->\n<!-- generated: events --><!-- /generated -->"
	if _, err := page(r, marks); err == nil {
		t.Error("a mark without its own line, and missing parts, pass")
	}
	text := "by hand\n"
	for _, part := range []string{"metrics", "events", "spans", "attributes"} {
		text += "<!-- generated: " + part + " -->\nold\n<!-- /generated -->\nkept\n"
	}
	got, err := page(r, text)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got, "by hand\n") || strings.Count(got, "kept\n") != 4 || strings.Contains(got, "old") {
		t.Errorf("got:\n%s", got)
	}
	for _, want := range []string{
		"### Circuit breaker", "| `switchgear.circuit_breaker.late_results`<br>Late ones. | counter | {call} |",
		"(where it has one): half_open; from first use open", "DEBUG<br>open: WARN",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
	if again, err := page(r, got); err != nil || again != got {
		t.Errorf("written again it changes: %v\n%s", err, again)
	}
}

func TestWhatIsOutOfDateIsNamed(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"otelx/registry", "internal/semconv", "docs"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	text := ""
	for _, part := range []string{"metrics", "events", "spans", "attributes"} {
		text += "<!-- generated: " + part + " -->\n<!-- /generated -->\n"
	}
	for name, text := range map[string]string{"otelx/registry/r.yaml": fine, "docs/telemetry.md": text} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := run(root, true)
	if err == nil || !strings.Contains(err.Error(), "names.go") || !strings.Contains(err.Error(), "telemetry.md") {
		t.Errorf("got %v", err)
	}
	if err := run(root, false); err != nil {
		t.Fatal(err)
	}
	if err := run(root, true); err != nil {
		t.Errorf("just written: %v", err)
	}
}
