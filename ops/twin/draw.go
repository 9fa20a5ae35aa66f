package twin

import (
	"math"
	"time"

	"clustergym/internal/rng"
	"clustergym/simulator/predict"
	"clustergym/traces"
)

// longest is the level of a forecast up to which run times are drawn: beyond it a forecast is a guess by a power law,
// whose mean need not exist.
const longest = 0.995

// overrun is how long a job runs that has reached its time limit and has not been ended yet.
const overrun = time.Minute

// unheard are the quantiles of a run time of which nothing is known: ten minutes to five hours.
var unheard = [predict.Quantiles]float64{6e11, 18e11, 36e11, 72e11, 18e12}

// drawer draws run times.
type drawer struct {
	seed  uint64
	alike float64 // share of the variance that jobs of one user and name have in common
}

// Draw returns the run time of j in a draw, given that it has run for ran: always more than that.
func (d *drawer) draw(j *Job, ran time.Duration, draw int) time.Duration {
	if j.Work > 0 { // known: the job of a question
		return j.Work
	}
	u := d.level(j, draw)
	limit := j.Estimate
	if j.Assumed {
		limit = 0
	}
	var t time.Duration
	switch {
	case (!j.Told || j.Forecast.Seen == 0) && j.Estimate > 0: // nothing is known but the limit, also one that is assumed
		t = ran + time.Duration(u*float64(max(0, j.Estimate-ran)))
	case j.Told:
		t = j.Forecast.Draw(u, ran)
	default:
		f := predict.Of(&unheard, 0)
		t = f.Draw(u, ran)
	}
	if limit > 0 {
		t = min(t, max(limit, ran+overrun))
	}
	return min(max(t, ran+1), traces.MaxTime/4)
}

// level returns where the run time of j lies among those that it may have, from 0 to longest.
func (d *drawer) level(j *Job, draw int) float64 {
	own := rng.Normal(rng.At(d.seed, rng.Hash("twin/job"), uint64(draw), rng.Hash(j.ID)))
	if d.alike > 0 {
		common := rng.Normal(rng.At(d.seed, rng.Hash("twin/user"), uint64(draw), rng.Hash(j.User), rng.Hash(j.Name)))
		own = math.Sqrt(d.alike)*common + math.Sqrt(1-d.alike)*own
	}
	return min(longest, math.Erfc(-own/math.Sqrt2)/2)
}

// known is a predictor that says what has been said already.
type known map[string]predict.Forecast

var _ predict.Maker = known(nil)

// New implements predict.Maker.
func (k known) New() predict.Predictor { return teller{k} }

// String implements predict.Maker.
func (known) String() string { return "twin" }

type teller struct{ of known }

func (teller) Reset(time.Duration) {}

func (t teller) Predict(_ time.Duration, _ int, j *traces.Job) predict.Forecast { return t.of[j.ID] }

func (teller) Started(time.Duration, int)                {}
func (teller) Stopped(time.Duration, int, time.Duration) {}
func (teller) Finished(time.Duration, int, time.Duration) {
}
func (teller) Dropped(time.Duration, int)       {}
func (teller) AppendSnapshot(dst []byte) []byte { return dst }
func (teller) RestoreSnapshot([]byte) error     { return nil }
