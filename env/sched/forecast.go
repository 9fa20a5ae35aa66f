package sched

import (
	"errors"

	"clustergym/simulator/sim"
)

// Forecast is the value of the key env.forecast: whether observations show the forecasts of single jobs, and what is
// known of their users and virtual clusters.
type Forecast string

// The values.
const (
	ForecastAuto Forecast = "auto" // where estimates are causal
	ForecastOn   Forecast = "on"
	ForecastOff  Forecast = "off"
)

// ForecastWanted says in words what a Forecast can be.
const ForecastWanted = "auto, on or off"

// Valid reports whether f is a value of the key.
func (f Forecast) Valid() bool { return f == ForecastAuto || f == ForecastOn || f == ForecastOff }

// IsZero reports whether f is the default, which configurations leave out: they are older than the key, and the hashes
// of scenarios are made of them.
func (f Forecast) IsZero() bool { return f == ForecastAuto }

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *Forecast) UnmarshalText(text []byte) error {
	if g := Forecast(text); g.Valid() {
		*f = g
		return nil
	}
	return errors.New("want " + ForecastWanted)
}

// Remembers reports whether an environment with estimates est has a predictor: for its estimates, or for observations
// of what is known of users. Estimates that know less than a predictor have none.
func (f Forecast) Remembers(est sim.Estimates) bool {
	return est.Causal() || f.Shown(est) && est.Rung() > sim.RungCausal
}

// Shown reports whether observations show forecasts where estimates are those of est.
func (f Forecast) Shown(est sim.Estimates) bool {
	return f == ForecastOn || f == ForecastAuto && est.Causal()
}
