package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// registry is what the files of a registry define, in their order: the parts of the format that are in use here.
type registry struct {
	attributes []*attribute
	groups     []*group
	metrics    []*metric
	events     []*event
	spans      []*span
}

// file is one file of the registry.
type file struct {
	Format     string       `yaml:"file_format"`
	Attributes []*attribute `yaml:"attributes"`
	Groups     []*group     `yaml:"attribute_groups"`
	Metrics    []*metric    `yaml:"metrics"`
	Events     []*event     `yaml:"events"`
	Spans      []*span      `yaml:"spans"`
}

type attribute struct {
	Key         string      `yaml:"key"`
	Type        valueType   `yaml:"type"`
	Brief       string      `yaml:"brief"`
	Note        string      `yaml:"note"`
	Stability   string      `yaml:"stability"`
	Examples    []any       `yaml:"examples"`
	Annotations annotations `yaml:"annotations"`

	foreign bool // defined by OpenTelemetry
}

// valueType is the type of an attribute: the name of one, or the members of an enum of strings.
type valueType struct {
	name    string
	members []member
}

type member struct {
	ID        string `yaml:"id"`
	Value     string `yaml:"value"`
	Brief     string `yaml:"brief"`
	Stability string `yaml:"stability"`
}

// UnmarshalYAML reads either form.
func (t *valueType) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		t.name = n.Value
		return nil
	}
	var enum struct {
		Members []member `yaml:"members"`
	}
	t.name = "string"
	err := n.Decode(&enum)
	t.members = enum.Members
	return err
}

func (t *valueType) values() (values []string) {
	for _, m := range t.members {
		values = append(values, m.Value)
	}
	return values
}

type group struct {
	ID         string `yaml:"id"`
	Visibility string `yaml:"visibility"`
	Attributes []*ref `yaml:"attributes"`
}

type metric struct {
	Name        string      `yaml:"name"`
	Instrument  string      `yaml:"instrument"`
	Unit        string      `yaml:"unit"`
	Brief       string      `yaml:"brief"`
	Note        string      `yaml:"note"`
	Stability   string      `yaml:"stability"`
	Annotations annotations `yaml:"annotations"`
	Attributes  []*ref      `yaml:"attributes"`
}

type event struct {
	Name        string      `yaml:"name"`
	Brief       string      `yaml:"brief"`
	Note        string      `yaml:"note"`
	Stability   string      `yaml:"stability"`
	Annotations annotations `yaml:"annotations"`
	Attributes  []*ref      `yaml:"attributes"`
}

type span struct {
	Type       string            `yaml:"type"`
	Kind       string            `yaml:"kind"`
	Name       map[string]string `yaml:"name"`
	Brief      string            `yaml:"brief"`
	Note       string            `yaml:"note"`
	Stability  string            `yaml:"stability"`
	Attributes []*ref            `yaml:"attributes"`
}

// ref is an attribute as one signal has it, or a group of such.
type ref struct {
	Ref         string      `yaml:"ref"`
	Group       string      `yaml:"ref_group"`
	Requirement requirement `yaml:"requirement_level"`
	Note        string      `yaml:"note"`
	Annotations annotations `yaml:"annotations"`
}

// requirement is the condition under which an attribute is there; "" for always.
type requirement string

// UnmarshalYAML reads required, or conditionally_required with its condition.
func (r *requirement) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		if n.Value != "required" {
			return fmt.Errorf("line %d: requirement_level is %s, want required or conditionally_required", n.Line, n.Value)
		}
		return nil
	}
	var conditional struct {
		Condition string `yaml:"conditionally_required"`
	}
	err := n.Decode(&conditional)
	*r = requirement(conditional.Condition)
	if err == nil && *r == "" {
		err = fmt.Errorf("line %d: requirement_level names no condition", n.Line)
	}
	return err
}

// annotations are what the format has no room for; manifest.yaml tells what they mean.
type annotations struct {
	CodeGeneration struct {
		ValueType string `yaml:"metric_value_type"`
	} `yaml:"code_generation"`
	Own struct {
		GoName     string                       `yaml:"go_name"`
		GoPrefix   string                       `yaml:"go_prefix"`
		Observable bool                         `yaml:"observable"`
		Boundaries []float64                    `yaml:"boundaries"`
		Reported   string                       `yaml:"reported"`
		Values     []string                     `yaml:"values"`
		Later      []string                     `yaml:"later"`
		Severity   string                       `yaml:"severity"`
		SeverityOf map[string]map[string]string `yaml:"severity_of"`
		Terminal   bool                         `yaml:"terminal"`
	} `yaml:"switchgear"`
}

// read reads the registry in dir.
func read(dir string) (*registry, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	r := new(registry)
	for _, path := range paths {
		if filepath.Base(path) == "manifest.yaml" {
			continue
		}
		if err := r.add(path); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	if len(r.metrics) == 0 {
		return nil, fmt.Errorf("%s: no metrics", dir)
	}
	// What is not of this registry: the attributes of OpenTelemetry's own that it refers to.
	r.attributes = append(r.attributes, &attribute{
		Key: "error.type", Type: valueType{name: "string"}, Brief: "What kind of error ended it.", Stability: "stable", foreign: true,
	})
	return r, r.check()
}

func (r *registry) add(path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	var f file
	d := yaml.NewDecoder(in)
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil {
		return err
	}
	if f.Format != "definition/2" {
		return fmt.Errorf("file_format is %q, want definition/2", f.Format)
	}
	r.attributes = append(r.attributes, f.Attributes...)
	r.groups = append(r.groups, f.Groups...)
	r.metrics = append(r.metrics, f.Metrics...)
	r.events = append(r.events, f.Events...)
	r.spans = append(r.spans, f.Spans...)
	return nil
}

// find returns the attribute of that key, or nil.
func (r *registry) find(key string) *attribute {
	i := slices.IndexFunc(r.attributes, func(a *attribute) bool { return a.Key == key })
	if i < 0 {
		return nil
	}
	return r.attributes[i]
}

// flatten returns refs with the groups among them replaced by their attributes.
func (r *registry) flatten(refs []*ref) (flat []*ref) {
	for _, a := range refs {
		if a.Group == "" {
			flat = append(flat, a)
			continue
		}
		i := slices.IndexFunc(r.groups, func(g *group) bool { return g.ID == a.Group })
		if i >= 0 {
			flat = append(flat, r.groups[i].Attributes...)
		}
	}
	return flat
}

// values returns the closed set of values that an attribute has on the signal that refers to it; nil for any value.
func (r *registry) values(a *ref) []string {
	if len(a.Annotations.Own.Values) > 0 {
		return a.Annotations.Own.Values
	}
	return r.find(a.Ref).Type.values()
}

// check returns an error that names every fault of the registry.
func (r *registry) check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	known := map[string]bool{}
	signal := func(name, brief, stability string) {
		if known[name] {
			fault("%s is defined twice", name)
		}
		known[name] = true
		if brief == "" || !strings.HasSuffix(brief, ".") {
			fault("%s: brief %q is not a sentence", name, brief)
		}
		if stability == "" {
			fault("%s has no stability", name)
		}
	}
	for _, a := range r.attributes {
		signal("attribute "+a.Key, a.Brief, a.Stability)
		if len(a.Type.members) > 0 && a.Annotations.Own.GoPrefix == "" {
			fault("attribute %s has values but no go_prefix", a.Key)
		}
		if !slices.Contains([]string{"string", "int", "double"}, a.Type.name) {
			fault("attribute %s has the type %q, want string, int or double", a.Key, a.Type.name)
		}
	}
	for _, m := range r.metrics {
		signal("metric "+m.Name, m.Brief, m.Stability)
		faults = append(faults, r.checkMetric(m), r.checkRefs(m.Name, m.Attributes))
	}
	for _, e := range r.events {
		signal("event "+e.Name, e.Brief, e.Stability)
		faults = append(faults, r.checkSeverity(e), r.checkRefs(e.Name, e.Attributes))
	}
	for _, s := range r.spans {
		signal("span "+s.Type, s.Brief, s.Stability)
		faults = append(faults, r.checkRefs(s.Type, s.Attributes))
	}
	return errors.Join(faults...)
}

func (r *registry) checkMetric(m *metric) error {
	own, values := m.Annotations.Own, m.Annotations.CodeGeneration.ValueType
	switch {
	case instrumentOf(m) == "":
		return fmt.Errorf("%s: there is no code for an instrument %s, observable: %v", m.Name, m.Instrument, own.Observable)
	case (m.Instrument == "histogram") != (len(own.Boundaries) > 0):
		return fmt.Errorf("%s: a histogram and nothing else has boundaries", m.Name)
	case (values == "double") != (m.Unit == "s"), values != "double" && values != "int":
		return fmt.Errorf("%s: metric_value_type is %q in unit %s; seconds are double, all else int", m.Name, values, m.Unit)
	case len(m.Attributes) == 0 || m.Attributes[0].Requirement != "":
		return fmt.Errorf("%s: the first attribute has to be the name, and required", m.Name)
	}
	return nil
}

func (r *registry) checkSeverity(e *event) error {
	own := e.Annotations.Own
	levels := []string{own.Severity}
	if len(own.SeverityOf) > 1 {
		return fmt.Errorf("%s: severity_of names more than one attribute", e.Name)
	}
	for key, by := range own.SeverityOf {
		def := r.find(key)
		for value, level := range by {
			if def == nil || !slices.Contains(def.Type.values(), value) {
				return fmt.Errorf("%s: severity_of: %s has no value %s", e.Name, key, value)
			}
			levels = append(levels, level)
		}
	}
	for _, level := range levels {
		if levelOf(level) == "" {
			return fmt.Errorf("%s: severity is %q, want DEBUG, INFO or WARN", e.Name, level)
		}
	}
	return nil
}

func (r *registry) checkRefs(signal string, refs []*ref) error {
	var faults []error
	for _, a := range refs {
		if a.Group != "" && !slices.ContainsFunc(r.groups, func(g *group) bool { return g.ID == a.Group }) {
			faults = append(faults, fmt.Errorf("%s: there is no attribute group %s", signal, a.Group))
		}
	}
	seen := map[string]bool{}
	for _, a := range r.flatten(refs) {
		def := r.find(a.Ref)
		if def == nil {
			faults = append(faults, fmt.Errorf("%s: there is no attribute %s", signal, a.Ref))
			continue
		}
		if seen[a.Ref] {
			faults = append(faults, fmt.Errorf("%s has %s twice", signal, a.Ref))
		}
		seen[a.Ref] = true
		all := r.values(a)
		if len(def.Type.members) > 0 {
			all = def.Type.values()
		}
		for _, v := range slices.Concat(a.Annotations.Own.Values, a.Annotations.Own.Later) {
			if !slices.Contains(all, v) {
				faults = append(faults, fmt.Errorf("%s: %s has no value %s", signal, a.Ref, v))
			}
		}
	}
	return errors.Join(faults...)
}
