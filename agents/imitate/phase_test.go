package imitate

import (
	"math"
	"testing"
)

// The learning rate falls linearly from the first step of the first round to the last of the last, and never reaches 0,
// which stands for the rate of training.
func TestTheLearningRateFalls(t *testing.T) {
	p := &Phase{cfg: Config{LR: 0.8, Epochs: 4, Rounds: 2}}
	last := 0.0
	for round := range 2 {
		for epoch := range 4 {
			p.state = State{Round: round, Epoch: epoch}
			for _, share := range []float64{0, .5} {
				got, want := p.rate(share), 0.8*(1-(float64(4*round+epoch)+share)/8)
				if math.Abs(got-want) > 1e-15 {
					t.Errorf("round %d, epoch %d, share %g: rate %g, want %g", round, epoch, share, got, want)
				}
				last = got
			}
		}
	}
	if end := p.rate(1); !(end > 0) || end >= last {
		t.Errorf("the last update has rate %g, after %g", end, last)
	}
	p.cfg.LR = 0
	if got := p.rate(.3); got != 0 {
		t.Errorf("without a rate of its own the imitation has rate %g", got)
	}
}
