//go:build !race

package badday

const raceEnabled = false
