package handle

import (
	"bytes"
	"testing"

	"clustergym/internal/rng"
)

func TestLargeObservationsAreCopiedAsSmallOnesAre(t *testing.T) {
	const stride, rows = 700, 301
	r := rng.Stream(1, "gather")
	obs := make([]float32, stride*rows)
	for i := range obs {
		obs[i] = r.Float32()
	}
	for _, c := range []struct {
		at, n int
		named bool
	}{{0, stride, false}, {0, stride, true}, {100, 350, false}, {100, 350, true}} {
		v := view{k: rows, obs: obs}
		if c.named {
			v.at = r.Perm(rows)[:rows-7]
			v.k = len(v.at)
		}
		want := make([]byte, 4*c.n*v.k)
		gatherF32(want, obs, stride, c.at, c.n, v.k, v.at)
		for _, workers := range []int{1, 2, 3, 64} {
			h := &Handle{}
			h.shape.obs, h.pace.workers = stride, workers
			got := make([]byte, len(want))
			h.gather(got, v, c.at, c.n)
			if len(got) < shared || !bytes.Equal(got, want) {
				t.Errorf("%+v, %d workers: %d bytes, not as copied by one", c, workers, len(got))
			}
		}
	}
}
