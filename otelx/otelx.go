// Package otelx reports policies through OpenTelemetry.
package otelx

import "github.com/switchgear-go/switchgear/policy/observe"

// ScopeName is the instrumentation scope of everything this package emits.
const ScopeName = "github.com/switchgear-go/switchgear/otelx"

// Default returns the observer of the global providers.
func Default() observe.Observer { return observe.Discard }
