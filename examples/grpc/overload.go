package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/grpcx"
)

// The plan of the overload.
const (
	room    = 4
	callers = 10 * room
	service = 10 * time.Millisecond // what a quote takes
	lasting = time.Second
	pause   = 10 * time.Millisecond // of a caller that was refused
)

// load is what callers of a protected server saw.
type load struct {
	served, refused []time.Duration // how long each took
	most            int64           // handlers at once
	others          []error         // what must not be
}

// overload asks a protected server for ten times as much as it has room for.
func overload(ctx context.Context) (l load, err error) {
	var running, most atomic.Int64
	q := &quotes{answer: func(ctx context.Context) error {
		n := running.Add(1)
		defer running.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		return wait(ctx, service)
	}}
	limit := bulkhead.New("quotes-server", bulkhead.Config{Max: room})
	conn, stop, err := serve(q, []grpc.ServerOption{grpc.ChainUnaryInterceptor(grpcx.UnaryServerInterceptor(limit))}, nil)
	if err != nil {
		return l, err
	}
	end := time.Now().Add(lasting)
	var (
		mu   sync.Mutex
		asks sync.WaitGroup
	)
	for range callers {
		asks.Go(func() {
			for ctx.Err() == nil && time.Now().Before(end) {
				start := time.Now()
				err := get(ctx, conn)
				took := time.Since(start)
				mu.Lock()
				l.add(err, took)
				mu.Unlock()
				if err != nil {
					_ = wait(ctx, pause) // the loop looks at ctx
				}
			}
		})
	}
	asks.Wait()
	l.most = most.Load()
	return l, errors.Join(ctx.Err(), stop())
}

func (l *load) add(err error, took time.Duration) {
	switch status.Code(err) {
	case codes.OK:
		l.served = append(l.served, took)
	case codes.ResourceExhausted:
		l.refused = append(l.refused, took)
	default:
		l.others = append(l.others, err)
	}
}

func (l *load) print(out io.Writer) {
	_, _ = fmt.Fprintf(out, "%d callers of a server with room for %d, for %v:\n\n", callers, room, lasting)
	_, _ = fmt.Fprintf(out, "  %-9s %7s %10s %10s\n", "", "calls", "median", "p99")
	for _, row := range []struct {
		name string
		took []time.Duration
	}{{"served", l.served}, {"refused", l.refused}} {
		_, _ = fmt.Fprintf(out, "  %-9s %7d %10v %10v\n", row.name, len(row.took), quantile(row.took, .5), quantile(row.took, .99))
	}
	_, _ = fmt.Fprintf(out, "\n  at most %d handlers at once\n", l.most)
}

// broken names what was not as it has to be.
func (l *load) broken() (err error) {
	if len(l.others) > 0 {
		err = errors.Join(err, fmt.Errorf("overload: %d calls ended otherwise: %w", len(l.others), l.others[0]))
	}
	if l.most > room {
		err = errors.Join(err, fmt.Errorf("overload: %d handlers at once in a room for %d", l.most, room))
	}
	if len(l.served) == 0 || len(l.refused) == 0 {
		err = errors.Join(err, fmt.Errorf("overload: %d served, %d refused", len(l.served), len(l.refused)))
	}
	return err
}

func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[int(q*float64(len(sorted)-1))].Round(10 * time.Microsecond)
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
