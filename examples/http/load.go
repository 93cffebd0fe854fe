package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"
)

const (
	patience = 500 * time.Millisecond // of a client; then it leaves
	calm     = capacity * 8 / 10      // requests a second
	surge    = capacity * 10
)

// request is a request of the load, at its end.
type request struct {
	start, end time.Duration // since the load began
	status     int           // 0: the client has left
}

// load is what happened to one server under the load.
type load struct {
	from, until, end time.Duration   // of the surge, and of all
	requests         []request       // in the order of their start
	refusals         []time.Duration // how long the server took for each, sorted
}

// rush puts a load on a handler: calm, then ten times of what it can do, and calm again. Requests come when they come,
// however many are unanswered.
func rush(ctx context.Context, handler http.Handler, unit time.Duration) *load {
	l := &load{from: unit, until: 4 * unit, end: 5 * unit}
	var mu sync.Mutex
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &status{ResponseWriter: w}
		start := time.Now()
		handler.ServeHTTP(seen, r)
		if seen.code == http.StatusServiceUnavailable && time.Since(start) < query { // it did not wait in line
			mu.Lock()
			l.refusals = append(l.refusals, time.Since(start))
			mu.Unlock()
		}
	}))
	defer srv.Close()
	base := &http.Transport{MaxIdleConnsPerHost: surge}
	defer base.CloseIdleConnections()
	client := &http.Client{Transport: base}

	begin := time.Now()
	var group sync.WaitGroup
	for at := time.Duration(0); at < l.end && ctx.Err() == nil; {
		time.Sleep(at - time.Since(begin))
		group.Go(func() {
			r := request{start: time.Since(begin), status: send(ctx, client, srv.URL)}
			r.end = time.Since(begin)
			mu.Lock()
			l.requests = append(l.requests, r)
			mu.Unlock()
		})
		rate := calm
		if l.from <= at && at < l.until {
			rate = surge
		}
		at += time.Second / time.Duration(rate)
	}
	group.Wait()
	slices.SortFunc(l.requests, func(a, b request) int { return int(a.start - b.start) })
	slices.Sort(l.refusals)
	return l
}

// send sends a request as an impatient client does, and returns the status; 0 if the client has left.
func send(ctx context.Context, client *http.Client, url string) int {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	status, err := exchange(ctx, client, http.MethodPost, url)
	if err != nil {
		return 0
	}
	return status
}

// status is a ResponseWriter that remembers the status.
type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// phase returns the requests that began in a time.
func (l *load) phase(from, until time.Duration) phase {
	p := phase{length: until - from}
	for _, r := range l.requests {
		if r.start < from || r.start >= until {
			continue
		}
		switch r.status {
		case http.StatusOK:
			p.served = append(p.served, r.end-r.start)
		case 0:
			p.left++
		default:
			p.refused = append(p.refused, r.end-r.start)
		}
	}
	slices.Sort(p.served)
	slices.Sort(p.refused)
	return p
}

// phase is what happened in a time.
type phase struct {
	length          time.Duration
	served, refused []time.Duration // how long they took, sorted
	left            int
}

func (p phase) perSecond(n int) int { return int(float64(n)/p.length.Seconds() + .5) }

// quantile returns a quantile of sorted durations; 0 if there are none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))]
}
