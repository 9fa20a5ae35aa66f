package options

import "clustergym/simulator/sim"

// EstimatesFlag is a flag of estimates.
type EstimatesFlag struct{ *sim.Estimates }

// Set implements pflag.Value.
func (f EstimatesFlag) Set(s string) error { return f.UnmarshalText([]byte(s)) }

// Type implements pflag.Value.
func (f EstimatesFlag) Type() string { return "string" }
