//go:build race

package policy

// raceEnabled reports whether the race detector is on, which makes everything many times slower.
const raceEnabled = true
