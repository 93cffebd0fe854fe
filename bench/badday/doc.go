// Package badday holds libraries for resilience to the days on which they are needed. Its tests run each behaviour that has
// hurt people against this library and against its peers, as their documentation says to use them, and write
// docs/comparison.md:
//
//	go test ./badday -update
//
// This library has to pass every row. A peer passes as it comes, or with a setting that the page then names.
package badday
