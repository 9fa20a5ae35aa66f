package testseed

import (
	"fmt"
	"strings"
	"testing"
)

func TestTheSeedComesFromTheEnvironment(t *testing.T) {
	t.Setenv(Key, "7011")
	if got := Or(3); got != 7011 {
		t.Errorf("got seed %d, want 7011", got)
	}
	t.Setenv(Key, "seven")
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, `CLUSTERGYM_TEST_SEED is "seven"`) {
			t.Errorf("got %q", text)
		}
	}()
	Or(3)
}
