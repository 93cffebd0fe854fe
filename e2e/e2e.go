// Package e2e proves the telemetry of Switchgear with the real parts that it is made for: an OpenTelemetry Collector, a
// Prometheus that scrapes a running outage, and what docs/operate gives an operator.
//
// The tests start and end what they need by themselves, on the loopback interface and in temporary folders. The Collector
// runs inside the test; prometheus and promtool have to be installed (on Debian: apt-get install prometheus). Other ones,
// such as those of Prometheus 3, are used where SWITCHGEAR_PROMETHEUS names the folder they are in. To build them takes long:
//
//	mkdir /tmp/prometheus3 && cd /tmp/prometheus3 && go mod init prometheus3
//	go get github.com/prometheus/prometheus/cmd/...@v0.315.1
//	go build -tags remove_all_sd -o . github.com/prometheus/prometheus/cmd/...
package e2e

import (
	"os"
	"testing"
)

// Real skips t where tests with real parts are not wanted: with -short, or where SWITCHGEAR_E2E is off.
func Real(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real servers: not with -short")
	}
	if os.Getenv("SWITCHGEAR_E2E") == "off" {
		t.Skip("starts real servers: SWITCHGEAR_E2E is off")
	}
}
