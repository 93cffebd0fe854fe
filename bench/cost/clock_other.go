//go:build !unix

package main

import "time"

var start = time.Now()

// processorTime returns the time since the start: on a quiet machine it is near the processor's time of one goroutine.
func processorTime() time.Duration { return time.Since(start) }
