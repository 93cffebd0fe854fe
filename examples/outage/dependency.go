package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	answerTime = 10 * time.Millisecond // of every answer, good or bad
	oneIn404   = 20                    // healthy answers of which one is "no such symbol"
	oneInHangs = 20                    // failing calls of which one is never answered
)

// dependency is the service that goes down: a real HTTP server.
type dependency struct {
	api     *quotesAPI // to reach it by
	failing atomic.Bool
	arrived func(failing bool) // called for each request
	server  *http.Server
	served  chan error
}

// network is where a dependency listens, and how it is dialed there.
type network func() (net.Listener, func(ctx context.Context, network, addr string) (net.Conn, error), error)

// loopback is the network of this machine.
func loopback() (net.Listener, func(ctx context.Context, network, addr string) (net.Conn, error), error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	return l, (&net.Dialer{}).DialContext, err
}

func startDependency(n network, arrived func(failing bool)) (*dependency, error) {
	listener, dial, err := n()
	if err != nil {
		return nil, err
	}
	d := &dependency{
		api: &quotesAPI{
			url:  "http://" + listener.Addr().String(),
			http: &http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: clients}},
		},
		arrived: arrived,
		served:  make(chan error, 1),
	}
	d.server = &http.Server{Handler: d, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { d.served <- d.server.Serve(listener) }()
	return d, nil
}

// ServeHTTP answers well or badly, depending on the phase.
func (d *dependency) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	failing := d.failing.Load()
	d.arrived(failing)
	if failing && rand.IntN(oneInHangs) == 0 {
		<-r.Context().Done() // until the client gives up
		return
	}
	if !sleep(r.Context(), answerTime) {
		return
	}
	switch {
	case failing:
		http.Error(w, "out of order", http.StatusInternalServerError)
	case rand.IntN(oneIn404) == 0:
		http.Error(w, "no such symbol", http.StatusNotFound)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(Quote{Symbol: symbol, Price: 42}) // the client may have left
	}
}

// close stops the server, also where clients still wait.
func (d *dependency) close() error {
	d.api.http.CloseIdleConnections()
	err := d.server.Close()
	if served := <-d.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// sleep waits for d and reports whether ctx let it.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
