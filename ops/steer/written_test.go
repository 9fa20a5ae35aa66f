package steer_test

import (
	"strings"
	"testing"

	"clustergym/ops/steer"
)

// An order that is written out steers as others do, unless it stops running jobs.
func TestWrittenOrdersSteer(t *testing.T) {
	for name, want := range map[string]string{
		"key: -wait / gpus+skip": "", "mine = key: estimate@slots": "", "rollout:key: estimate+skip": "",
		"key: left; stop if: true": "stops running jobs, which steer never does",
		"key: waitt":               `"waitt" is unknown; use wait`,
	} {
		_, err := steer.Names().Resolve(name)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
