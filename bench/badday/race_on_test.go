//go:build race

package badday

// raceEnabled reports whether the race detector is on: what it finds in the peers is not for this project to mend.
const raceEnabled = true
