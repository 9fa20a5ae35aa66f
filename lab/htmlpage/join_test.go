package htmlpage

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"clustergym/simulator/sim"
)

// later is an observer that begins to pass points on when a time has come.
type later struct {
	from time.Duration
	o    sim.Observer
}

func (l later) Observe(v *sim.View, p *sim.Point) error {
	if p.Now < l.from {
		return nil
	}
	return l.o.Observe(v, p)
}

// A run that is observed from a point in its middle shows what a run observed from its beginning shows after that
// point: the same series, and the same stints, of which those that were under way begin at the first event that is
// seen.
func TestARunCanBeJoinedAtAnyPoint(t *testing.T) {
	for _, cluster := range []string{"3x2", "pool:6"} {
		for _, from := range []time.Duration{0, 40 * second, 200 * second, 431 * second, 700 * second} {
			whole, part := New(1), New(1)
			cfg := sim.DefaultConfig()
			simulate(t, cfg, short(t, cluster), mixed(120), policy(t, "srtf"), whole.Run("whole"), later{from, part.Run("part")})
			a, b := decode(t, whole), decode(t, part)
			// Times of a page are relative to its first event.
			shift := int64(0)
			if r := part.runs[0]; r.begun {
				shift = millis(r.from - whole.runs[0].from)
			}
			stints := func(r *readRun, add int64) (all []string) {
				start, span := int64(0), 0
				for i := range r.Stints.Job {
					start += r.Stints.Start[i]
					n := int(r.Stints.Spans[i])
					var held []int64
					for k := span; k < span+n; k++ {
						held = append(held, r.Stints.GPU[k], r.Stints.N[k])
					}
					span += n
					end := start + r.Stints.Length[i] + add
					if cluster != "3x2" { // lanes are given anew
						held = nil
					}
					if end > shift {
						all = append(all, fmt.Sprint(r.Stints.Job[i], max(start+add, shift), end, held))
					}
				}
				slices.Sort(all)
				return all
			}
			if got, want := stints(&b.Runs[0], shift), stints(&a.Runs[0], 0); !slices.Equal(got, want) {
				t.Errorf("%s from %v: stints\n%v, want\n%v", cluster, from, got, want)
			}
			at := func(r *readRun, t, variable int64) float64 { // after all changes at t
				v := 0.0
				for i, x := range r.Series.At {
					if x <= t {
						v = r.Series.Values[variable][i]
					}
				}
				return v
			}
			for _, x := range b.Runs[0].Series.At {
				for variable := range int64(3) {
					if got, want := at(&b.Runs[0], x, variable), at(&a.Runs[0], x+shift, variable); got != want {
						t.Errorf("%s from %v: variable %d is %v after %d ms, want %v", cluster, from, variable, got, x, want)
					}
				}
			}
			for i, s := range b.Runs[0].Stints.Job {
				if id := b.Jobs.ID[s]; id != a.Jobs.ID[s] {
					t.Errorf("%s from %v: stint %d is of job %q, want %q", cluster, from, i, id, a.Jobs.ID[s])
				}
			}
		}
	}
}
