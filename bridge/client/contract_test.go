package client_test

import (
	"testing"

	"clustergym/env"
	"clustergym/env/control"
	"clustergym/env/envtest"
	"clustergym/internal/raced"
)

// A remote environment keeps the contract that the local one keeps.
func TestRemoteEnvironmentsKeepTheContract(t *testing.T) {
	addr := serve(t, nil)
	ids := append(control.IDs(), driftID)
	if raced.On {
		ids = []string{"InvalidAction-v1", driftID}
	}
	for _, id := range ids {
		t.Run(id, func(t *testing.T) {
			t.Parallel() // most of the time goes into waiting
			c := dial(t, addr, nil)
			envtest.Run(t, func() env.Env { return open(t, c, id, nil) }, envtest.Sealed(), envtest.Episodes(1))
		})
	}
}
