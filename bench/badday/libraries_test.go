package badday

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// libraries are all that are compared, this one first.
func libraries() []library {
	return []library{switchgear(), failsafeGo(), goBreaker(), resiliency(), backoffs(), retrygo(), extended()}
}

// versions returns the versions of the modules that are compared.
func versions(t *testing.T) map[string]string {
	f, err := os.Open("../go.mod")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	all := map[string]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if module, version, ok := strings.Cut(strings.TrimSpace(s.Text()), " "); ok {
			version, _, _ = strings.Cut(version, " ")
			all[module] = version
		}
	}
	return all
}
