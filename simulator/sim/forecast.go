package sim

import (
	"time"

	"clustergym/internal/grow"
	"clustergym/internal/snap"
	"clustergym/simulator/predict"
)

// dated is a stream of jobs that begins at some time of a longer one: 0 on the run's clock is Origin on that of the
// predictor's archive.
type dated interface{ Origin() time.Duration }

// forecasts are what the run's predictor says of the jobs in the system.
type forecasts struct {
	told bool               // jobs have forecasts: those of by, or in a fork those of the original and of its Future
	by   predict.Predictor  // nil = nothing
	past predict.Historian  // by, if it can renew forecasts; else nil
	anew predict.Renewer    // by, if it can renew forecasts; else nil
	of   []predict.Forecast // by job, as of its submit
}

func (f *forecasts) use(p predict.Predictor) {
	f.by, f.told = p, p != nil
	f.past, _ = p.(predict.Historian)
	f.anew, _ = p.(predict.Renewer)
}

func (f *forecasts) reset(jobs any) {
	if f.by == nil {
		return
	}
	var origin time.Duration
	if d, ok := jobs.(dated); ok {
		origin = d.Origin()
	}
	f.by.Reset(origin)
	f.of = f.of[:0]
}

// submitted asks for the forecast for j, which has just arrived.
func (s *Simulator) submitted(j Job) {
	f := &s.forecasts
	of := grow.At(&f.of, j)
	if s.role == forks {
		*of = s.foretold()
		return
	}
	*of = f.by.Predict(time.Duration(s.now), int(j), s.traced[j])
}

// savedForecasts are the forecasts of a snapshot.
type savedForecasts struct {
	by []byte
	of []predict.Forecast
}

// code appends f to a snapshot of so many jobs, or reads it from one.
func (f *savedForecasts) code(c *snap.Codec, jobs int) {
	c.Bytes(&f.by)
	if c.Reads() {
		f.of = make([]predict.Forecast, jobs)
	}
	for i := range f.of {
		g := &f.of[i]
		for k := range g.Q {
			snap.Ints(c, &g.Q[k])
		}
		snap.Ints(c, &g.Seen)
	}
}
