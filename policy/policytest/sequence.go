package policytest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/switchgear-go/switchgear/policy/observe"
)

const (
	arrow    = " → "
	anything = "…" // any number of events
	nothing  = "none"
)

// term is a name with arguments: an event, or a row of numbers. As something wanted it may leave arguments out.
type term struct {
	word string
	args []string
	at   time.Duration // of an event
	when bool          // at is wanted
}

func (t term) String() string {
	if len(t.args) == 0 {
		return t.word
	}
	return t.word + "(" + strings.Join(t.args, ", ") + ")"
}

// covers reports whether got is what t wants: the same word, and all arguments of t in their order.
func (t term) covers(got term) bool {
	if t.word != got.word || t.when && t.at != got.at {
		return false
	}
	rest := got.args
	for _, a := range t.args {
		i := slices.Index(rest, a)
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
	return true
}

// eventTerm returns an event in full.
func eventTerm(e observe.Event, at time.Duration) term {
	t := term{at: at}
	delay := ""
	if e.Delay != 0 || e.Kind == observe.Attempt {
		delay = e.Delay.String()
	}
	attempt := ""
	if e.Attempt != 0 {
		attempt = strconv.Itoa(e.Attempt)
	}
	args := []string{e.Name}
	switch e.Kind {
	case observe.StateChange:
		t.word, args = e.To, append(args, e.Reason, delay)
	case observe.Rejected:
		t.word, args = "reject", []string{short(e.Policy), e.Name, e.From, e.Reason}
	case observe.Attempt:
		t.word, args = "retry", append(args, attempt, delay)
	case observe.Exhausted:
		t.word, args = "exhausted", append(args, e.Reason, attempt)
	case observe.TimedOut:
		t.word, args = "timeout", append(args, delay)
	case observe.Hedged:
		t.word, args = "hedge", append(args, attempt, delay, e.Reason)
	case observe.FellBack:
		t.word = "fallback"
	default:
		t.word, args = e.Kind.String(), []string{short(e.Policy), e.Name}
	}
	t.args = slices.DeleteFunc(args, func(a string) bool { return a == "" })
	return t
}

// short returns a policy's type as it is called in prose.
func short(policyType string) string {
	switch policyType {
	case "circuit_breaker":
		return "breaker"
	case "rate_limiter":
		return "limiter"
	}
	return policyType
}

// wanted is a term of a sequence: what is wanted, as it was written.
type wanted struct {
	term
	text string
}

var termText = regexp.MustCompile(`^([\w.]+)(?:\(([^()]*)\))?(?:@([\w.µ]+))?(?:\s*[×*]\s*(\d+))?$`)

// parseSequence reads a sequence.
func parseSequence(text string) ([]wanted, error) {
	text = strings.TrimSpace(strings.ReplaceAll(text, "->", "→"))
	if text == nothing || text == "" {
		return nil, nil
	}
	var seq []wanted
	for part := range strings.SplitSeq(text, "→") {
		part = strings.TrimSpace(part)
		if part == anything || part == "..." {
			seq = append(seq, wanted{term: term{word: anything}, text: anything})
			continue
		}
		t, times, err := parseTerm(part)
		if err != nil {
			return nil, err
		}
		if i := strings.LastIndexAny(part, "×*"); i >= 0 {
			part = strings.TrimSpace(part[:i])
		}
		for range times {
			seq = append(seq, wanted{term: t, text: part})
		}
	}
	return seq, nil
}

// parseTerm reads word(arg, arg)@time×times.
func parseTerm(text string) (t term, times int, err error) {
	m := termText.FindStringSubmatch(text)
	if m == nil {
		return t, 0, fmt.Errorf("policytest: cannot read %q: want something like retry, reject(breaker), open(api)@2s or retry×3", text)
	}
	t.word, times = m[1], 1
	for a := range strings.SplitSeq(m[2], ",") {
		if a = strings.TrimSpace(a); a != "" {
			t.args = append(t.args, a)
		}
	}
	if m[3] != "" {
		if t.at, err = time.ParseDuration(m[3]); err != nil {
			return t, 0, fmt.Errorf("policytest: cannot read the time of %q: %w", text, err)
		}
		t.when = true
	}
	if m[4] != "" {
		if times, err = strconv.Atoi(m[4]); err != nil {
			return t, 0, fmt.Errorf("policytest: cannot read how often %q comes: %w", text, err)
		}
	}
	return t, times, nil
}

// pair sets one event against one wanted term: indices, or -1 for what has no counterpart.
type pair struct{ got, want int }

// align sets events against a sequence so that the fewest of both are left over, and returns how many are.
func align(got []term, seq []wanted) (pairs []pair, over int) {
	// cost[i][j] is what got[i:] and seq[j:] cost.
	cost := make([][]int, len(got)+1)
	for i := len(got); i >= 0; i-- {
		cost[i] = make([]int, len(seq)+1)
		for j := len(seq); j >= 0; j-- {
			cost[i][j] = leftOver(cost, got, seq, i, j)
		}
	}
	for i, j := 0, 0; i < len(got) || j < len(seq); {
		switch {
		case j < len(seq) && seq[j].word == anything:
			if i < len(got) && cost[i][j] == cost[i+1][j] {
				pairs = append(pairs, pair{i, j})
				i++
			} else {
				j++
			}
		case i < len(got) && j < len(seq) && seq[j].covers(got[i]) && cost[i][j] == cost[i+1][j+1]:
			pairs = append(pairs, pair{i, j})
			i, j = i+1, j+1
		case i < len(got) && cost[i][j] == cost[i+1][j]+1:
			pairs = append(pairs, pair{i, -1})
			i++
		default:
			pairs = append(pairs, pair{-1, j})
			j++
		}
	}
	return pairs, cost[0][0]
}

func leftOver(cost [][]int, got []term, seq []wanted, i, j int) int {
	switch {
	case i == len(got) && j == len(seq):
		return 0
	case j < len(seq) && seq[j].word == anything:
		if i == len(got) {
			return cost[i][j+1]
		}
		return min(cost[i][j+1], cost[i+1][j])
	case i == len(got):
		return 1 + cost[i][j+1]
	case j == len(seq):
		return 1 + cost[i+1][j]
	}
	least := 1 + min(cost[i][j+1], cost[i+1][j])
	if seq[j].covers(got[i]) {
		least = min(least, cost[i+1][j+1])
	}
	return least
}

// joined returns terms as a sequence.
func joined(terms []term) string {
	if len(terms) == 0 {
		return nothing
	}
	texts := make([]string, len(terms))
	for i, t := range terms {
		texts[i] = t.String()
	}
	return strings.Join(texts, arrow)
}
