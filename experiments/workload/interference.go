package workload

import (
	"io"

	"clustergym/env/sim"
	"clustergym/traces"
	"clustergym/traces/profile"
)

// InterferenceForms says what SimConfig.Interference can be.
const InterferenceForms = "seeded:N (random, as DeepShare measured), or a FILE: model,other,kept with a header, or a table of co-location"

// loadInterference reads an interference table.
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
