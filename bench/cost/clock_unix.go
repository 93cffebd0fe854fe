//go:build unix

package main

import (
	"syscall"
	"time"
)

// processorTime returns the time that this process has had a processor. Unlike the time of day it does not run on while other
// processes have the machine, nor while goroutines sleep.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
