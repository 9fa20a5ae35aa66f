package schedulers_test

import (
	"strconv"
	"testing"

	"clustergym/simulator/schedulers"
)

// Every policy of Tiresias' simulator whose rule is stated, on a counter of 48 GPUs: means, quantiles and stops equal
// that simulator's, to the last digit printed.
func TestTiresiasOnACounter(t *testing.T) {
	jobs := published(t)
	for _, want := range []struct {
		order, admission, jct, p50, p99, first, wait, bsld string
		preemptions                                        int
	}{
		{"las", "skip", "352919.966825", "19819.00", "3919542.26", "618.177725", "278427.658768", "6.212846", 522},
		{"las-2d", "skip", "362071.763033", "102533.50", "3777921.26", "26.246445", "287579.454976", "42.278922", 566},
		{"fifo", "strict", "841484.616114", "935980.50", "1483645.84", "766992.308057", "766992.308057", "390.215304", 0},
		{"fifo", "skip", "387281.428910", "274612.50", "2720427.26", "312789.120853", "312789.120853", "81.316622", 0},
		{"lpf", "strict", "819604.739336", "906312.00", "1465628.07", "745112.431280", "745112.431280", "379.285332", 0},
		{"srtf", "skip", "232178.016588", "11296.00", "2804609.59", "121397.708531", "157685.708531", "1.917906", 299},
		{"srsf", "skip", "260758.168246", "11296.00", "3699165.97", "152246.909953", "186265.860190", "3.755021", 196},
		{"smallest-preempt", "skip", "412227.710900", "94740.50", "4699394.76", "325541.665877", "337735.402844", "65.179114",
			42},
	} {
		t.Run(want.order+"+"+want.admission, func(t *testing.T) {
			cfg := schedulers.DefaultConfig()
			cfg.Order, cfg.Admission = want.order, want.admission
			got := run(t, "pool:48", jobs, cfg)
			dec := func(v float64, n int) string { return strconv.FormatFloat(v, 'f', n, 64) }
			if dec(got.JCT.Mean, 6) != want.jct || dec(got.JCT.P50, 2) != want.p50 || dec(got.JCT.P99, 2) != want.p99 ||
				dec(got.Wait.Mean, 6) != want.wait || dec(got.FirstWait.Mean, 6) != want.first ||
				dec(got.BoundedSlowdown.Mean, 6) != want.bsld || got.Makespan != 7658747 || got.Preemptions != want.preemptions {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}
