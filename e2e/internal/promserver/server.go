// Package promserver runs a real Prometheus, and its promtool, for a test.
package promserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/stretchr/testify/require"
)

// Config says what a Prometheus does.
type Config struct {
	Target   string        // host:port to scrape
	Interval time.Duration // between scrapes, and between evaluations of the rules
	Rules    []string      // files
}

// Start runs a Prometheus until the test ends.
func Start(t testing.TB, cfg Config) *Server {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(file, []byte(cfg.yaml()), 0o600))

	ctx := withinDeadline(t)
	cmd := exec.CommandContext(ctx, binary(t, "prometheus"),
		"--config.file="+file,
		"--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address=127.0.0.1:0") // it picks the port and says so
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	log := &output{found: make(chan string, 1)}
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	var ended error
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		ended = cmd.Wait()
	}()
	t.Cleanup(func() { // ctx has ended by now
		<-gone
		if t.Failed() {
			t.Logf("prometheus ended with %v and said:\n%s", ended, log.text())
		}
	})

	var address string
	select {
	case address = <-log.found:
	case <-gone:
		t.Fatal("prometheus ended before it listened")
	case <-time.After(30 * time.Second):
		t.Fatal("prometheus does not listen after 30 s")
	}
	transport := new(http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	client, err := api.NewClient(api.Config{Address: "http://" + address, RoundTripper: transport})
	require.NoError(t, err)
	Await(t, func() string {
		if isReady(ctx, transport, address) {
			return ""
		}
		return "a prometheus that is ready"
	})
	return &Server{API: prometheus.NewAPI(client)}
}

func (c Config) yaml() string {
	var b strings.Builder
	fmt.Fprintf(&b, "global: {scrape_interval: %dms, scrape_timeout: %[1]dms, evaluation_interval: %[1]dms}\n", c.Interval.Milliseconds())
	fmt.Fprintf(&b, "rule_files: [%s]\n", strings.Join(c.Rules, ", "))
	fmt.Fprintf(&b, "scrape_configs: [{job_name: switchgear, static_configs: [{targets: [%q]}]}]\n", c.Target)
	return b.String()
}

func isReady(ctx context.Context, transport http.RoundTripper, address string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/-/ready", http.NoBody)
	if err != nil {
		return false
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// Tool runs promtool and returns what it printed, and the error it ended with.
func Tool(t testing.TB, stdin []byte, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(withinDeadline(t), binary(t, "promtool"), args...)
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// binary returns the path of a program that comes with Prometheus.
func binary(t testing.TB, name string) string {
	t.Helper()
	if dir := os.Getenv("SWITCHGEAR_PROMETHEUS"); dir != "" {
		name = filepath.Join(dir, name)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v\nInstall it (on Debian: apt-get install prometheus), name its folder in SWITCHGEAR_PROMETHEUS, or set SWITCHGEAR_E2E=off.", err)
	}
	return path
}

// withinDeadline returns a context that ends with the test and, where go test has a limit, before that one kills the test
// and leaves its children behind.
func withinDeadline(t testing.TB) context.Context {
	ctx := t.Context()
	d, ok := t.(interface{ Deadline() (time.Time, bool) })
	if !ok {
		return ctx
	}
	deadline, ok := d.Deadline()
	if !ok {
		return ctx
	}
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(-10*time.Second))
	t.Cleanup(cancel)
	return ctx
}

var listening = regexp.MustCompile(`msg="Listening on".* address=(\S+).*\n`)

// output keeps what Prometheus says and finds the address in it.
type output struct {
	found chan string // receives the address, once

	mu   sync.Mutex
	said bytes.Buffer // guarded by mu
	told bool         // guarded by mu
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.said.Write(p)
	if o.told {
		return len(p), nil
	}
	if m := listening.FindSubmatch(o.said.Bytes()); m != nil {
		o.told = true
		o.found <- string(m[1])
	}
	return len(p), nil
}

func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.said.String()
}
