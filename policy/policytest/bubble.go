package policytest

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// patience is how much real time anything may take before it is taken to hang. Only what is broken ever takes so long.
const patience = 20 * time.Second

// bubble runs f in a synctest bubble and returns what kept it from ending as it should; "" if nothing did. Unlike
// [synctest.Test] alone it lives through a deadlock, and through waits that synctest cannot see, such as for a mutex: the
// kit then has more to say than a list of goroutines.
func bubble(t *testing.T, patience time.Duration, f func(t *testing.T)) (trouble string) {
	end := make(chan string, 1)
	go func() {
		trouble := ""
		defer func() {
			if r := recover(); r != nil {
				trouble = fmt.Sprintf("%v. Goroutines in bubbles:\n%s", r, indented(bubbles()))
			}
			end <- trouble // also where a failing test leaves by Goexit
		}()
		synctest.Test(t, f)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case trouble = <-end:
		return trouble
	case <-timer.C:
		return fmt.Sprintf("it hangs: in %v of real time it has not come to rest. Goroutines in bubbles:\n%s", patience, indented(bubbles()))
	}
}

var goroutineHeader = regexp.MustCompile(`^goroutine (\d+) \[.*synctest bubble (\d+).*\]:`)

// goroutines returns the stacks of the other goroutines in the bubble of the calling one, by their number.
func goroutines() map[string]string {
	stacks := allStacks()
	own := goroutineHeader.FindStringSubmatch(stacks[0])
	if own == nil {
		return nil // the text has changed: what is left to tell of a leak is synctest's own panic
	}
	found := map[string]string{}
	for _, stack := range stacks[1:] {
		if m := goroutineHeader.FindStringSubmatch(stack); m != nil && m[2] == own[2] {
			found[m[1]] = stack
		}
	}
	return found
}

// bubbles returns the stacks of all goroutines that are in a bubble.
func bubbles() string {
	var found []string
	for _, stack := range allStacks() {
		if goroutineHeader.MatchString(stack) {
			found = append(found, stack)
		}
	}
	return strings.Join(found, "\n\n")
}

// allStacks returns the stack of every goroutine, the calling one's first.
func allStacks() []string {
	buf := make([]byte, 1<<16)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			return strings.Split(strings.TrimSpace(string(buf[:n])), "\n\n")
		}
		buf = make([]byte, 2*len(buf))
	}
}

func indented(text string) string { return "\t" + strings.ReplaceAll(text, "\n", "\n\t") }
