package envs

import (
	"errors"
	"strings"
	"testing"

	"clustergym/bridge/server"
	"clustergym/internal/fault"
)

// refused fails the test unless err is the user's mistake: one sentence that contains all of want.
func refused(t *testing.T, what string, err error, want ...string) {
	t.Helper()
	var input *fault.Mistake
	if !errors.As(err, &input) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: %v (%T), want a *fault.Mistake of one line", what, err, err)
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q does not say %q", what, err, w)
		}
	}
}

func closeAll(m *server.Made) (err error) {
	for _, e := range m.Envs {
		err = errors.Join(err, e.Close())
	}
	return err
}
