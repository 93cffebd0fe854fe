package main

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// row is one line of the table: a server, and how the load was.
type row struct {
	server string
	times  string
	phase
}

func rows(name string, l *load) []row {
	return []row{
		{name, fmt.Sprintf("%d/s", calm), l.phase(0, l.from)},
		{name, fmt.Sprintf("%d/s", surge), l.phase(l.from, l.until)},
		{name, fmt.Sprintf("%d/s", calm), l.phase(l.until, l.end)},
	}
}

// printRush prints the table.
func printRush(out io.Writer, with, without *load) {
	fmt.Fprintf(out, "%-14s %8s %9s %11s %10s %12s %14s\n", "server", "load", "served/s", "p99 served", "refused/s", "p99 refused", "clients left/s")
	for _, r := range append(rows("protected", with), rows("not protected", without)...) {
		fmt.Fprintf(out, "%-14s %8s %9d %11s %10d %12s %14d\n", r.server, r.times, r.perSecond(len(r.served)), short(quantile(r.served, .99)),
			r.perSecond(len(r.refused)), short(quantile(r.refused, .99)), r.perSecond(r.left))
	}
	fmt.Fprintf(out, "\nThe protected server took %v (median), %v (p99) for each of %d refusals.\n",
		quantile(with.refusals, .5).Round(time.Microsecond), quantile(with.refusals, .99).Round(time.Microsecond), len(with.refusals))
}

// limits are what the protected server has to keep.
type limits struct {
	served   float64       // of its capacity, in the surge
	p99      time.Duration // of what it serves
	refusal  time.Duration // that it takes for a refusal,
	quantile float64       // for this share of them
}

// rushed returns the claims about a load that do not hold.
func rushed(with, without *load, want limits) error {
	var faults []error
	claim := func(holds bool, format string, args ...any) {
		if !holds {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	under, alone := with.phase(with.from, with.until), without.phase(without.from, without.until)
	served, lost := under.perSecond(len(under.served)), alone.perSecond(len(alone.served))
	claim(float64(served) >= want.served*float64(capacity), "the protected server served %d/s under ten times its capacity of %d/s", served, capacity)
	p99 := quantile(under.served, .99)
	claim(p99 <= want.p99, "the slowest of what it served took %v", p99)
	refusal := quantile(with.refusals, want.quantile)
	claim(len(with.refusals) > len(under.served) && refusal <= want.refusal, "it took %v for a refusal, of %d", refusal, len(with.refusals))
	claim(under.left*20 <= len(under.served), "%d clients left without an answer", under.left)
	claim(lost < served, "without protection as many are served: %d/s", lost)
	return errors.Join(faults...)
}

// short returns a duration as the table has it.
func short(d time.Duration) string {
	switch {
	case d == 0:
		return "–"
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%dms", d.Milliseconds())
}
