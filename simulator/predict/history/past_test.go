package history_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"clustergym/simulator/predict"
	"clustergym/simulator/predict/gbdt"
	"clustergym/simulator/predict/history"
	"clustergym/traces"
)

// Past tells of the last jobs of a user, and of those of a virtual cluster and size, what they took beside all jobs.
func TestPastTellsOfUserAndVC(t *testing.T) {
	makers := map[string]predict.Maker{"history": history.NewArchive(nil), "gbdt": gbdt.New(1)}
	for name, m := range makers {
		p := m.New()
		p.Reset(0)
		ended := map[string][]float64{}
		number := 0
		play := func(user, vc string, gpus int, work time.Duration) (u, v predict.Past) {
			j := traces.Job{ID: "j", User: user, VC: vc, GPUs: gpus, GPUMilli: 1000, Work: work}
			now := time.Duration(number) * time.Hour
			p.Predict(now, number, &j)
			u, v = p.(predict.Historian).Past(number)
			p.Started(now, number)
			p.Finished(now+work, number, work)
			for _, k := range []string{"user " + user, "all", "vc " + vc + string(rune('0'+gpus))} {
				ended[k] = append(ended[k], float64(work))
			}
			number++
			return u, v
		}
		// median is that of the last Keep.
		median := func(key string) float64 {
			x := slices.Clone(ended[key])
			x = x[max(0, len(x)-history.Keep):]
			slices.Sort(x)
			return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
		}
		for i := range 120 {
			user, vc := []string{"", "ann", "bob"}[i%3], []string{"x", "y"}[i%2]
			gpus := 1 + i%4/2
			before := map[string]predict.Past{}
			for _, k := range []string{"user " + user, "vc " + vc + string(rune('0'+gpus))} {
				if n := len(ended[k]); n > 0 {
					before[k] = predict.Past{Ended: int32(min(n, history.Keep)), Ratio: median(k) / median("all")}
				}
			}
			if user == "" {
				before["user "] = predict.Past{}
			}
			u, v := play(user, vc, gpus, time.Duration(1+i*i%37)*time.Minute)
			for what, got := range map[string]predict.Past{"user " + user: u, "vc " + vc + string(rune('0'+gpus)): v} {
				want := before[what]
				if got.Ended != want.Ended || math.Abs(got.Ratio-want.Ratio) > 1e-9*want.Ratio {
					t.Fatalf("%s, job %d: %s: %+v, want %+v", name, i, what, got, want)
				}
			}
		}
		if u, v := p.(predict.Historian).Past(10_000); u != (predict.Past{}) || v != (predict.Past{}) {
			t.Errorf("%s: an unknown job has the past %+v, %+v", name, u, v)
		}
	}
}
