// Package tools pins the tools that the Makefile uses, as tool lines of go.mod.
package tools
