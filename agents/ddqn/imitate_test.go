package ddqn

import (
	"math"
	"testing"

	"clustergym/internal/rng"
	"clustergym/internal/testseed"
	"clustergym/nets/model"
)

// The loss of imitation and its gradient are those of the definition: Huber's loss of the error, and by how much the
// best other legal action exceeds the teacher's less the margin.
func TestTheMarginLossAndItsGradient(t *testing.T) {
	seed := testseed.Or(71)
	t.Logf("seed %d", seed)
	r := rng.Stream(seed, "margin")
	const n, o, k, rows = 6, 3, 4, 5
	cfg := model.Config{Kind: "mlp", Hidden: []int{6}, Activation: "tanh", Init: "orthogonal", Head: "dense"}
	for _, duelling := range []bool{true, false} {
		net, err := model.NewQNet(cfg, model.Input{{Name: "o", Shape: []int{o}}}, k, duelling, r)
		if err != nil {
			t.Fatal(err)
		}
		l, err := newLoss(net, o, n, true)
		if err != nil {
			t.Fatal(err)
		}
		l.set(1, rows)
		mask := make([]bool, n*k)
		for i := range n {
			for j := range k {
				mask[i*k+j] = j == 0 || r.IntN(3) > 0
				l.mask[i*k+j] = 0
				if mask[i*k+j] {
					l.mask[i*k+j] = 1
				}
			}
			for j := range o {
				l.obs[i*o+j] = float32(r.NormFloat64())
			}
			l.target[i], l.weight[i], l.action[i] = float32(r.NormFloat64()), r.Float32(), 0
		}
		l.weight[n-1] = 0 // fills up the batch
		l.part(n)
		loss := func() float64 {
			q, sum := net.Forward(n).Run(l.obs, mask, n), 0.0
			for i := range rows {
				taken := int(l.action[i])
				top := math.Inf(-1)
				for j := range k {
					x := float64(q[i*k+j])
					if j != taken {
						x += margin
					}
					if mask[i*k+j] {
						top = max(top, x)
					}
				}
				e := math.Abs(float64(q[i*k+taken]) - float64(l.target[i]))
				huber := e * e / 2
				if e > 1 {
					huber = e - 0.5
				}
				sum += float64(l.weight[i]) * (huber + top - float64(q[i*k+taken]))
			}
			return sum / rows
		}
		if err := l.run(); err != nil {
			t.Fatal(err)
		}
		if got, want := l.value(), loss(); math.Abs(got-want) > 1e-5 {
			t.Errorf("the loss is %v, want %v", got, want)
		}
		grad := l.grad().Data
		for i, g := range grad {
			p, step, here := &net.Params().Data[i], float32(1e-3), loss()
			was := *p
			*p = was + step
			up := (loss() - here) / float64(step)
			*p = was - step
			down := (here - loss()) / float64(step)
			*p = was
			// Between the two: where the largest action changes within the step, the loss has a kink.
			if g, slack := float64(g), 1e-2*(1+math.Abs(up)); g < min(up, down)-slack || g > max(up, down)+slack {
				t.Errorf("the derivative by parameter %d is %v, by differences %v and %v", i, g, down, up)
			}
		}
	}
}
