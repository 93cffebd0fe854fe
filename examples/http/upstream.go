package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/switchgear-go/switchgear/policy"
)

const (
	callers = 8
	pause   = 10 * time.Millisecond
)

// upstream is a host that the client asks, and what became of the calls.
type upstream struct {
	name    string
	url     string
	asked   atomic.Int64 // requests that reached it
	badly   atomic.Int64 // those it treated badly
	broken  atomic.Bool
	behaves func(n int64, w http.ResponseWriter, r *http.Request)

	mu    sync.Mutex
	calls []call // guarded by mu
}

// call is a call of the client.
type call struct {
	outcome outcome
	took    time.Duration
	broken  bool // the upstream was, when it ended
}

type outcome int

const (
	answered outcome = iota // 200
	failed                  // a failed response, or an error
	refused                 // by a policy
)

// misbehave is what a server in trouble does, one after the other.
func misbehave(n int64, w http.ResponseWriter, r *http.Request) {
	switch n % 4 {
	case 0:
		w.WriteHeader(http.StatusServiceUnavailable)
	case 1: // hangs
		<-r.Context().Done()
	case 2: // dies in the middle of the header
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 20")
			_ = conn.Close()
		}
	case 3:
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "<html>the proxy in front has this to say</html>")
	}
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := u.asked.Add(1)
	if u.broken.Load() && u.behaves != nil {
		u.badly.Add(1)
		u.behaves(n, w, r)
		return
	}
	_, _ = io.WriteString(w, "here you are\n")
}

// visit lets callers ask two hosts in turn, one of which is in trouble from a third of the time to two thirds of it.
func visit(ctx context.Context, length time.Duration) (well, bad *upstream, h *hosts) {
	well, bad = &upstream{name: "catalog"}, &upstream{name: "prices", behaves: misbehave}
	for _, u := range []*upstream{well, bad} {
		srv := httptest.NewServer(u)
		defer srv.Close()
		u.url = srv.URL
	}
	base := &http.Transport{MaxIdleConnsPerHost: callers}
	defer base.CloseIdleConnections()
	h = newHosts()
	client := newClient(h, base)

	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	defer time.AfterFunc(length/3, func() { bad.broken.Store(true) }).Stop()
	defer time.AfterFunc(2*length/3, func() { bad.broken.Store(false) }).Stop()
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for ctx.Err() == nil {
				well.ask(ctx, client)
				bad.ask(ctx, client)
				time.Sleep(pause)
			}
		})
	}
	group.Wait()
	return well, bad, h
}

// ask makes one call. That is all there is to it at the call site.
func (u *upstream) ask(ctx context.Context, client *http.Client) {
	start := time.Now()
	status, err := exchange(ctx, client, http.MethodGet, u.url)
	c := call{took: time.Since(start), broken: u.broken.Load()}
	switch {
	case ctx.Err() != nil:
		return
	case errors.Is(err, policy.ErrRejected):
		c.outcome = refused
	case err != nil || status != http.StatusOK:
		c.outcome = failed
	}
	u.mu.Lock()
	u.calls = append(u.calls, c)
	u.mu.Unlock()
}

// exchange sends a request and reads the response.
func exchange(ctx context.Context, client *http.Client, method, url string) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func (u *upstream) count(o outcome) (n int) {
	for _, c := range u.calls {
		if c.outcome == o {
			n++
		}
	}
	return n
}

func (u *upstream) took(o outcome) []time.Duration {
	var all []time.Duration
	for _, c := range u.calls {
		if c.outcome == o {
			all = append(all, c.took)
		}
	}
	slices.Sort(all)
	return all
}

// printVisit prints what became of the calls.
func printVisit(out io.Writer, upstreams ...*upstream) {
	fmt.Fprintf(out, "%-10s %7s %9s %7s %8s %14s %20s\n", "host", "calls", "answered", "failed", "refused", "refused in p99", "requests it mistreated")
	for _, u := range upstreams {
		fmt.Fprintf(out, "%-10s %7d %9d %7d %8d %14s %20d\n", u.name, len(u.calls), u.count(answered), u.count(failed), u.count(refused),
			short(quantile(u.took(refused), .99)), u.badly.Load())
	}
}

// visited returns the claims about a visit that do not hold.
func visited(well, bad *upstream, h *hosts) error {
	var faults []error
	if n := len(well.calls) - well.count(answered); n > 0 {
		faults = append(faults, fmt.Errorf("%d calls of the host that is well were not answered", n))
	}
	if bad.count(refused) < bad.count(failed) {
		faults = append(faults, fmt.Errorf("of the calls to the host in trouble %d failed and only %d were refused", bad.count(failed), bad.count(refused)))
	}
	if last := bad.calls[len(bad.calls)-1]; last.outcome != answered {
		faults = append(faults, errors.New("the host that was in trouble was not found well again"))
	}
	n := 0
	for host := range h.All() {
		if u, err := url.Parse("http://" + host); err == nil && u.Port() != "" {
			n++
		}
	}
	if n != 2 {
		faults = append(faults, fmt.Errorf("there are policies for %d hosts, not 2", n))
	}
	return errors.Join(faults...)
}
