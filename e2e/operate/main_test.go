package operate_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dir is what is tested here.
const dir = "../../docs/operate/"
