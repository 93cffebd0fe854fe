package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/failsafehttp"

	"github.com/switchgear-go/switchgear/httpx"
)

// Requests to a server in the same process: what policies cost beside all that a request costs anyway.

// requestWay is one way to send a request.
type requestWay struct {
	name      string
	transport func(base http.RoundTripper) http.RoundTripper
	limit     bool // under a context with a timeout
}

type requestResult struct {
	name         string
	connections  []int
	perSecond    []float64 // by the index of connections: the median of the rounds
	microseconds []float64 // of processors' time for a request
	ratio        []float64 // of that to the plain ones', within a round
	allocations  []float64 // for a request, those of the server included
}

const requestBatch = 40 * time.Millisecond

func requestWays() []requestWay {
	same := func(base http.RoundTripper) http.RoundTripper { return base }
	return []requestWay{
		{name: "net/http", transport: same},
		{name: "net/http under context.WithTimeout", transport: same, limit: true},
		{name: "Switchgear, four layers", transport: func(base http.RoundTripper) http.RoundTripper {
			return &httpx.Transport{Base: base, Policy: fourLayers(nil)}
		}},
		{name: "Switchgear, four layers, an SDK collecting", transport: func(base http.RoundTripper) http.RoundTripper {
			return &httpx.Transport{Base: base, Policy: fourLayers(collecting())}
		}},
		{name: "failsafe-go, four layers", transport: func(base http.RoundTripper) http.RoundTripper {
			return failsafehttp.NewRoundTripper(base, failsafeLayers[*http.Response]()...) //nolint:bodyclose // nothing is sent yet
		}},
	}
}

// measureRequests lets the ways take turns, as jobs do.
func measureRequests(rounds int) ([]requestResult, error) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello")
	}))
	defer server.Close()
	base := &http.Transport{MaxIdleConnsPerHost: 64}
	defer base.CloseIdleConnections()

	ways := requestWays()
	results := make([]requestResult, len(ways))
	clients := make([]http.RoundTripper, len(ways))
	for i, w := range ways {
		results[i].name, clients[i] = w.name, w.transport(base)
	}
	for _, connections := range []int{1, 8} {
		speeds, costs, ratios := make([][]float64, len(ways)), make([][]float64, len(ways)), make([][]float64, len(ways))
		allocations := make([][]float64, len(ways))
		for n := range rounds + 1 {
			speed, cost := make([]float64, len(ways)), make([]float64, len(ways))
			for k := range ways {
				i := (k + n) % len(ways)
				perSecond, us, allocated, err := send(clients[i], ways[i].limit, server.URL, connections)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", ways[i].name, err)
				}
				speed[i], cost[i] = perSecond, us
				if n > 0 { // the first round warms up
					allocations[i] = append(allocations[i], allocated)
				}
			}
			if n == 0 {
				continue
			}
			for i := range ways {
				speeds[i], costs[i], ratios[i] = append(speeds[i], speed[i]), append(costs[i], cost[i]), append(ratios[i], cost[i]/cost[0])
			}
		}
		for i := range ways {
			slices.Sort(speeds[i])
			slices.Sort(costs[i])
			slices.Sort(ratios[i])
			slices.Sort(allocations[i])
			r := &results[i]
			r.connections = append(r.connections, connections)
			r.perSecond = append(r.perSecond, at(speeds[i], .5))
			r.microseconds = append(r.microseconds, at(costs[i], .5))
			r.ratio = append(r.ratio, at(ratios[i], .5))
			r.allocations = append(r.allocations, at(allocations[i], .5))
		}
	}
	return results, nil
}

// send sends requests for a while, over so many connections at once.
func send(client http.RoundTripper, limited bool, url string, connections int) (perSecond, us, allocations float64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var mu sync.Mutex
	sent := 0
	begin, used := time.Now(), processorTime()
	var all sync.WaitGroup
	for range connections {
		all.Go(func() {
			n := 0
			for time.Since(begin) < requestBatch {
				if e := sendOne(client, limited, url); e != nil {
					mu.Lock()
					err = e
					mu.Unlock()
					return
				}
				n++
			}
			mu.Lock()
			sent += n
			mu.Unlock()
		})
	}
	all.Wait()
	took, spent := time.Since(begin), processorTime()-used
	runtime.ReadMemStats(&after)
	return float64(sent) / took.Seconds(), float64(spent.Microseconds()) / float64(sent), float64(after.Mallocs-before.Mallocs) / float64(sent), err
}

func sendOne(client http.RoundTripper, limited bool, url string) error {
	ctx := background
	if limited {
		c, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		ctx = c
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.RoundTrip(req)
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	return resp.Body.Close()
}

func requestTable(results []requestResult) string {
	var out strings.Builder
	out.WriteString("| |")
	for _, c := range results[0].connections {
		plural := "s"
		if c == 1 {
			plural = ""
		}
		fmt.Fprintf(&out, " %d connection%s: requests/s | µs of a processor | of plain | allocations |", c, plural)
	}
	out.WriteString("\n|---|" + strings.Repeat("--:|--:|--:|--:|", len(results[0].connections)) + "\n")
	for _, r := range results {
		fmt.Fprintf(&out, "| %s |", r.name)
		for i := range r.connections {
			fmt.Fprintf(&out, " %.0f | %.1f | %.2f | %.0f |", r.perSecond[i], r.microseconds[i], r.ratio[i], r.allocations[i])
		}
		out.WriteString("\n")
	}
	return out.String()
}
