package operate_test

import (
	"context"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/operate"
	"clustergym/live"
	"clustergym/live/livetest"
)

// weighed is a cluster in which ranks are one factor among others.
type weighed struct {
	*livetest.Cluster
	score, others int64
}

func (w *weighed) Weights(context.Context) (score, others int64, err error) {
	return w.score, w.others, nil
}

// Ranks that weigh less than what else a cluster orders jobs by are said to.
func TestRanksThatWeighLittle(t *testing.T) {
	c := inMemory(t, 2)
	for _, x := range []struct {
		mode          string
		score, others int64
		says          bool
	}{{"rank", 1000, 8000, true}, {"rank", 8000, 8000, false}, {"shadow", 1000, 8000, false}} {
		operate.Steered = func(*operate.ClusterFlags) (live.Cluster, error) { return &weighed{c, x.score, x.others}, nil }
		_, _, said := clitest.Run(t,
			strings.Fields("steer --cluster slurm --policy sjf --cycles 1 --estimates trace --max-age 1000000h --mode "+
				x.mode)...)
		if strings.Contains(said, "SiteFactor of 1000, and slurm.conf gives all other factors of a priority up to 8000") !=
			x.says {
			t.Errorf("%s with %d beside %d: it was said %q", x.mode, x.score, x.others, said)
		}
	}
}
