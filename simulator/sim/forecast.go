package sim

import (
	"fmt"
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

func (f *forecasts) append(b []byte, jobs int) []byte {
	b = snap.Bytes(b, f.by.AppendSnapshot(nil))
	for i := range jobs {
		g := &f.of[i]
		for _, q := range g.Q {
			b = snap.Int(b, int(q))
		}
		b = snap.Int(b, int(g.Seen))
	}
	return b
}

// savedForecasts are the forecasts of a decoded snapshot.
type savedForecasts struct {
	by []byte
	of []predict.Forecast
}

func (f *savedForecasts) read(r *snap.Reader, jobs int) error {
	f.by = r.Bytes()
	for i := range jobs {
		var g predict.Forecast
		for k := range g.Q {
			g.Q[k] = time.Duration(r.Int())
		}
		seen := r.Int()
		g.Seen = int32(seen)
		if int(g.Seen) != seen || !g.Valid() {
			return fmt.Errorf("job %d is forecast to run for %v", i, g.Q)
		}
		f.of = append(f.of, g)
	}
	return nil
}
