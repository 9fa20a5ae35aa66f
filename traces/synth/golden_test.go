package synth

import (
	"fmt"
	"hash/fnv"
	"runtime"
	"testing"
)

// Published results depend on generated workloads, so a change to the generator must not go unnoticed. It needs a line
// in the change log and new numbers here.
func TestWorkloadsStayAsTheyAre(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the last bits of logarithms differ between architectures")
	}
	for _, c := range []struct {
		profile string
		seed    uint64
		want    uint64
	}{{"philly", 1, 0x5423febcbd90e7eb}, {"philly", 2, 0x18c8f39dfc000e6d}, {"philly-users", 1, 0x6d55787de21a101d},
		{"philly-users", 2, 0xc11599134a9d6e09}} {
		h := fnv.New64a()
		jobs := generate(t, 5000, c.seed, func(cfg *Config) { cfg.Profile = c.profile })
		for i := range jobs {
			j := &jobs[i]
			fmt.Fprintln(h, j.ID, j.User, j.VC, j.Submit, j.Work, j.GPUs)
			if c.profile == "philly-users" {
				fmt.Fprintln(h, j.Name)
			}
		}
		if got := h.Sum64(); got != c.want {
			t.Errorf("%s, seed %d: %#x, want %#x; the last job is %+v", c.profile, c.seed, got, c.want, jobs[len(jobs)-1])
		}
	}
}
