package main

import (
	"errors"
	"fmt"
	"time"
)

// claim is something that a run has to show.
type claim struct {
	text string // with what was measured
	ok   bool
}

const (
	refusedAtLeast = 0.9 // of the calls made while open
	// slack is what a busy machine may add to one call.
	slack = 400 * time.Millisecond
)

// claims judges a run.
func (h *history) claims() []claim {
	probes := h.halfOpenCalls()
	made, refused := h.whileOpen()
	share := ratio(refused, made)
	recovery, recovered := h.recovery()
	limit := h.cooldownRest() + 20*time.Millisecond // the longest pause, then one answer; well below slack

	answered := "no answer came"
	if recovered {
		answered = fmt.Sprintf("%s of %s", short(recovery), short(limit))
	}
	return []claim{
		{fmt.Sprintf("exactly 1 call reaches the server at half-open: %s", count(probes)), probes == 1},
		{
			fmt.Sprintf("at least %.0f%% of the calls made while open are refused: %s of %s (reference: 9,000 in 2s)", 100*refusedAtLeast, count(refused), count(made)),
			made > 0 && share >= refusedAtLeast,
		},
		{"recovery within the cooldown's rest and one call: " + answered, recovered && recovery <= limit+slack},
	}
}

// broken returns an error that names the claims that do not hold, or nil.
func (h *history) broken() error {
	var errs []error
	for _, c := range h.claims() {
		if !c.ok {
			errs = append(errs, fmt.Errorf("this did not hold: %s", c.text))
		}
	}
	return errors.Join(errs...)
}

// result is a run as -json tells it. What does not apply is 0.
type result struct {
	HalfOpenCalls int     `json:"half_open_calls"` // the most that reached the dependency in one half-open stay
	Refused       int     `json:"refused"`         // calls made while the breaker was open
	OpenedMS      float64 `json:"opened_ms"`       // from the start of the outage
	RecoveryMS    float64 `json:"recovery_ms"`     // from its end to the first answer
	OK            bool    `json:"ok"`              // all claims hold
}

// report is what -json prints.
type report struct {
	With    result `json:"with"`
	Without result `json:"without"`
}

func (h *history) result() result {
	opened, _ := h.opened()
	recovery, _ := h.recovery()
	_, refused := h.whileOpen()
	return result{
		HalfOpenCalls: h.halfOpenCalls(),
		Refused:       refused,
		OpenedMS:      milliseconds(opened),
		RecoveryMS:    milliseconds(recovery),
		OK:            h.broken() == nil,
	}
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Round(100*time.Microsecond)) / float64(time.Millisecond)
}

func ratio(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
