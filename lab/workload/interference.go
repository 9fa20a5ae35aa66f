package workload

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/simulator/sim"
	"clustergym/traces"
	"clustergym/traces/profile"
)

// InterferenceForms describes the forms of simulate.Config.Interference.
const InterferenceForms = "seeded:N (random, as DeepShare measured), or a FILE: model,other,kept with a header, or a " +
	"table of co-location"

// LoadInterference returns the interference table that spec, one of InterferenceForms, names.
func LoadInterference(spec string) (sim.Interference, error) {
	from, err := Located(spec)
	if err != nil {
		return nil, err
	}
	// seeded:N is read by package profile; a text like it is no file.
	if word, n, ok := strings.Cut(from, ":"); ok && nearest.Name(word, []string{"seeded"}) != "" && word != "seeded" {
		if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
			return nil, fault.Mistakef("interference: got %q, want %s; did you mean seeded:%s?", spec, InterferenceForms, n)
		}
	}
	x, err := profile.LoadInterference(context.Background(), traces.OrdinaryFiles(), from)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	return x, nil
}
