package main

import (
	"fmt"
	"regexp"
	"strings"
)

// region is a part of the page that is generated; what stands around it is written by hand.
var region = regexp.MustCompile(`(?s)(<!-- generated: (\w+) -->\n).*?(<!-- /generated -->)`)

// page returns text with its generated parts written anew.
func page(r *registry, text string) (string, error) {
	parts := map[string]func(*registry) string{"metrics": metricTables, "events": eventTables, "spans": spanTable, "attributes": valueTables}
	var err error
	written := map[string]bool{}
	text = region.ReplaceAllStringFunc(text, func(found string) string {
		m := region.FindStringSubmatch(found)
		part := parts[m[2]]
		if part == nil {
			err = fmt.Errorf("there is no part %q to generate", m[2])
			return found
		}
		written[m[2]] = true
		return m[1] + "\n" + part(r) + "\n" + m[3]
	})
	for name := range parts {
		if err == nil && !written[name] {
			err = fmt.Errorf("the part %q is missing: <!-- generated: %s -->…<!-- /generated -->", name, name)
		}
	}
	return text, err
}

// kinds are the instruments as a reader knows them.
var kinds = map[string]string{
	"Histogram":               "histogram",
	"ObservableCounter":       "counter",
	"ObservableUpDownCounter": "up-down counter",
}

// metricTables returns a table of metrics for each subject, in the registry's order.
func metricTables(r *registry) string {
	var out strings.Builder
	last := ""
	for _, m := range r.metrics {
		if s := subject(m.Name); s != last {
			last = s
			fmt.Fprintf(&out, "%s### %s\n\n| metric | kind | unit | attributes beside `%s` |\n|---|---|---|---|\n", gap(&out), title(s), m.Attributes[0].Ref)
		}
		about := m.Brief
		if m.Note != "" {
			about += " " + strings.TrimSpace(m.Note)
		}
		if when := m.Annotations.Own.Reported; when != "" {
			about += " Only " + when + "."
		}
		fmt.Fprintf(&out, "| `%s`<br>%s | %s | %s | %s |\n", m.Name, about, kinds[instrumentOf(m)], m.Unit, r.attributesCell(r.flatten(m.Attributes)[1:]))
	}
	return out.String()
}

func eventTables(r *registry) string {
	var out strings.Builder
	out.WriteString("| event | severity | attributes |\n|---|---|---|\n")
	for _, e := range r.events {
		own := e.Annotations.Own
		severity := own.Severity
		for key, levels := range own.SeverityOf {
			for _, v := range r.find(key).Type.values() {
				if level, ok := levels[v]; ok {
					severity += fmt.Sprintf("<br>%s: %s", v, level)
				}
			}
		}
		var refs []*ref
		for _, a := range e.Attributes {
			if a.Group != "switchgear.event" {
				refs = append(refs, a)
			}
		}
		about := e.Brief
		if own.Terminal {
			about += " Never left out."
		}
		fmt.Fprintf(&out, "| `%s`<br>%s | %s | %s |\n", e.Name, about, severity, r.attributesCell(r.flatten(refs)))
	}
	return out.String()
}

func spanTable(r *registry) string {
	var out strings.Builder
	out.WriteString("| span | attributes |\n|---|---|\n")
	for _, s := range r.spans {
		fmt.Fprintf(&out, "| `%s`<br>%s | %s |\n", s.Name["note"], s.Brief, r.attributesCell(r.flatten(s.Attributes)))
	}
	return out.String()
}

// valueTables returns what each attribute and each of its values means.
func valueTables(r *registry) string {
	var out strings.Builder
	out.WriteString("| attribute | type | |\n|---|---|---|\n")
	for _, a := range r.attributes {
		about := a.Brief
		if a.Note != "" {
			about += " " + strings.TrimSpace(a.Note)
		}
		for _, m := range a.Type.members {
			if m.Brief != "" {
				about += fmt.Sprintf("<br>`%s`: %s", m.Value, m.Brief)
			}
		}
		if a.foreign {
			about += " One of " + strings.Join(r.usedValues(a.Key), ", ") + "."
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", a.Key, a.Type.name, about)
	}
	return out.String()
}

// usedValues returns the values that an attribute of another registry has here.
func (r *registry) usedValues(key string) []string {
	for _, g := range r.groups {
		for _, a := range g.Attributes {
			if a.Ref == key {
				return r.values(a)
			}
		}
	}
	return nil
}

// attributesCell returns the attributes of a signal with their closed sets of values.
func (r *registry) attributesCell(refs []*ref) string {
	var lines []string
	for _, a := range refs {
		line := "`" + a.Ref + "`"
		if a.Requirement != "" {
			line += " (where " + strings.TrimPrefix(string(a.Requirement), "where ") + ")"
		}
		now, later := r.values(a), a.Annotations.Own.Later
		if len(now) > 0 && !r.find(a.Ref).foreign {
			line += ": " + strings.Join(without(now, later), ", ")
		}
		if len(later) > 0 {
			line += "; from first use " + strings.Join(later, ", ")
		}
		if a.Note != "" {
			line += ". " + strings.TrimSpace(a.Note)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "<br>")
}

// subject returns what a metric is about: the part of its name that follows the prefix.
func subject(name string) string {
	part, _, _ := strings.Cut(strings.TrimPrefix(name, "switchgear."), ".")
	return part
}

func title(subject string) string {
	words := strings.ReplaceAll(subject, "_", " ")
	return strings.ToUpper(words[:1]) + words[1:]
}

func gap(out *strings.Builder) string {
	if out.Len() == 0 {
		return ""
	}
	return "\n"
}

func without(all, some []string) (rest []string) {
	known := map[string]bool{}
	for _, v := range some {
		known[v] = true
	}
	for _, v := range all {
		if !known[v] {
			rest = append(rest, v)
		}
	}
	return rest
}
