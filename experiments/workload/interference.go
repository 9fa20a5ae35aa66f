package workload

import (
	"io"

	"clustergym/env/sim"
	"clustergym/traces"
	"clustergym/traces/profile"
)

// InterferenceForms describes the forms of simulate.Config.Interference.
const InterferenceForms = "seeded:N (random, as DeepShare measured), or a FILE: model,other,kept with a header, or a table of co-location"

// LoadInterference returns the interference table that spec, one of InterferenceForms, names.
func LoadInterference(spec string) (sim.Interference, error) {
	from, err := Located(spec)
	if err != nil {
		return nil, err
	}
	x, err := profile.LoadInterference(from, func(path string) (io.ReadCloser, error) { return traces.OpenFile(path) })
	if err != nil {
		return nil, &InputError{err}
	}
	return x, nil
}
