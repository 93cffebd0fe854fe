package otlp_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// collector is an OpenTelemetry Collector that receives OTLP over gRPC and keeps what arrives.
type collector struct {
	address string // host:port
	metrics consumertest.MetricsSink
	traces  consumertest.TracesSink
	logs    consumertest.LogsSink
}

const collectorConfig = `yaml:
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:0}}}
exporters:
  memory: {}
service:
  pipelines:
    metrics: {receivers: [otlp], exporters: [memory]}
    traces: {receivers: [otlp], exporters: [memory]}
    logs: {receivers: [otlp], exporters: [memory]}
`

// startCollector runs a Collector until the test ends.
func startCollector(t *testing.T) *collector {
	t.Helper()
	c := new(collector)
	core, said := observer.New(zap.InfoLevel)
	col, err := otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo:               component.NewDefaultBuildInfo(),
		Factories:               func() (otelcol.Factories, error) { return c.factories(zap.New(core)) },
		DisableGracefulShutdown: true, // signals are for the test
		SkipSettingGRPCLogger:   true,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs:              []string{collectorConfig},
			ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()},
		}},
	})
	require.NoError(t, err)

	ended := make(chan error, 1)
	go func() { ended <- col.Run(context.WithoutCancel(t.Context())) }()
	t.Cleanup(func() {
		col.Shutdown()
		require.NoError(t, <-ended)
	})
	require.Eventually(t, func() bool { return col.GetState() == otelcol.StateRunning || len(ended) > 0 }, 30*time.Second, time.Millisecond)
	// It has picked a free port, and tells it in a log.
	started := said.FilterMessage("Starting GRPC server").All()
	require.Len(t, started, 1, "the Collector does not listen")
	c.address, _ = started[0].ContextMap()["endpoint"].(string)
	require.NotEmpty(t, c.address)
	return c
}

// factories returns what the Collector is made of.
func (c *collector) factories(logger *zap.Logger) (f otelcol.Factories, err error) {
	f.Receivers, err = otelcol.MakeFactoryMap(otlpreceiver.NewFactory())
	if err != nil {
		return f, err
	}
	f.Exporters, err = otelcol.MakeFactoryMap(c.memory())
	f.Telemetry = telemetry.NewFactory(func() component.Config { return struct{}{} },
		telemetry.WithCreateLogger(func(context.Context, telemetry.LoggerSettings, component.Config) (*zap.Logger, component.ShutdownFunc, error) {
			return logger, nil, nil
		}))
	return f, err
}

// memory returns the exporter that keeps what arrives.
func (c *collector) memory() exporter.Factory {
	type kept struct {
		component.StartFunc
		component.ShutdownFunc
	}
	return exporter.NewFactory(component.MustNewType("memory"), func() component.Config { return struct{}{} },
		exporter.WithMetrics(func(context.Context, exporter.Settings, component.Config) (exporter.Metrics, error) {
			return struct {
				kept
				*consumertest.MetricsSink
			}{MetricsSink: &c.metrics}, nil
		}, component.StabilityLevelDevelopment),
		exporter.WithTraces(func(context.Context, exporter.Settings, component.Config) (exporter.Traces, error) {
			return struct {
				kept
				*consumertest.TracesSink
			}{TracesSink: &c.traces}, nil
		}, component.StabilityLevelDevelopment),
		exporter.WithLogs(func(context.Context, exporter.Settings, component.Config) (exporter.Logs, error) {
			return struct {
				kept
				*consumertest.LogsSink
			}{LogsSink: &c.logs}, nil
		}, component.StabilityLevelDevelopment),
	)
}
