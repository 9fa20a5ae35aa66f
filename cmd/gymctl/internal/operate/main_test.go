package operate_test

import (
	"testing"

	"clustergym/cmd/gymctl/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }
