package grpcx_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/switchgear-go/switchgear/breaker"
	"github.com/switchgear-go/switchgear/bulkhead"
	"github.com/switchgear-go/switchgear/grpcx"
	"github.com/switchgear-go/switchgear/otelx"
	"github.com/switchgear-go/switchgear/policy"
	"github.com/switchgear-go/switchgear/retry"
)

// What traffic carries must not become series: methods, metadata, errors.
func TestHostileTrafficLeavesABoundedNumberOfSeries(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	o := otelx.New(otelx.WithMeterProvider(provider))
	random := rand.New(rand.NewPCG(1, 2))
	word := func() string { return hex.EncodeToString(fmt.Append(nil, random.Uint64())) }

	server := policy.NewPipeline("server", bulkhead.New("server", bulkhead.Config{Max: 10, Observer: o})).Observed(o)
	addr := serve(t, &service{},
		grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
			method, _ := grpc.MethodFromServerStream(s)
			return status.Error(codes.Code(len(method)%20), "error of "+method) // codes that do not exist among them
		}),
		grpc.StreamInterceptor(grpcx.StreamServerInterceptor(server)))
	client := policy.NewPipeline("client",
		policy.Timeout(time.Minute),
		retry.New(retry.Config{Attempts: 2, BackOff: instantly, Budget: retry.NewBudget("client", retry.BudgetConfig{})}),
		breaker.New("client", breaker.Config{MinCalls: 1_000_000, Observer: o}),
	).Observed(o)
	conn := dial(t, addr, client)

	after := map[int]int{}
	for i := range 10_000 {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "x-"+word(), word())
		_ = conn.Invoke(ctx, "/"+word()+"/"+word()[:random.IntN(20)], number(i), new(text), grpc.CallAuthority(word()))
		if i == 999 || i == 9_999 {
			after[i] = series(t, reader)
		}
	}
	assert.Equal(t, after[999], after[9_999], "nine thousand calls have added series")
	assert.Less(t, after[9_999], 120)
	require.NoError(t, provider.Shutdown(context.Background()))
}

// series counts the attribute sets of all metrics.
func series(t *testing.T, reader *sdkmetric.ManualReader) (n int) {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				n += len(data.DataPoints)
			case metricdata.Sum[float64]:
				n += len(data.DataPoints)
			case metricdata.Histogram[float64]:
				n += len(data.DataPoints)
			default:
				t.Fatalf("%s is a %T", m.Name, data)
			}
		}
	}
	return n
}
