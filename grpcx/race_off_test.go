//go:build !race

package grpcx_test

const raceEnabled = false
