//go:build race

package grpcx_test

const raceEnabled = true // it makes messages ten times as slow
