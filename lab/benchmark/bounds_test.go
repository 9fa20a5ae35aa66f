package benchmark

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"clustergym/internal/raced"
	"clustergym/internal/safefile"
	"clustergym/internal/statistic"
)

// The bounds follow from the tasks, for one task of each environment; -update computes and writes all of them.
func TestBoundsAreThoseOfTheTasks(t *testing.T) {
	if raced.On {
		t.Skip("one goroutine beside those of decompression, in which no race can be; make unit runs this test")
	}
	v := Numbered(1)
	some := []string{"jobselect-philly-exact", "preempt-users-causal", "queuerank-gangs-exact", "gpupick-helios-128-exact",
		"delayoffer-gangs-exact", "dagplace-busy", "workerplace-ps"}
	if testing.Short() {
		some = []string{"dagplace-busy", "workerplace-ps"}
	}
	all := map[string]bound{}
	for i := range v.Tasks {
		task := &v.Tasks[i]
		if !*update && !slices.Contains(some, task.Name) {
			continue
		}
		b, err := task.newBound(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all[task.Name] = b
		if had := recorded()[task.Name]; !*update && !reflect.DeepEqual(had, b) {
			t.Errorf("%s: the bounds are %.4v…, recorded are %.4v…", task.Name, b.Least[:4], had.Least[:min(4, len(had.Least))])
		}
	}
	if *update {
		text, err := json.Marshal(all)
		if err == nil {
			err = os.WriteFile("bounds.json", append(text, '\n'), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// No policy is better than its task allows: on every task a row of zeros, or of values a little below what is possible,
// is refused with the figure. A row at the bounds passes, and so do the best rules.
func TestRowsThatAreTooGoodAreRefused(t *testing.T) {
	if raced.On {
		t.Skip("one goroutine beside those of decompression, in which no race can be; make unit runs this test")
	}
	v := Numbered(1)
	for i := range v.Tasks {
		task := &v.Tasks[i]
		cfg, err := task.Config()
		if err != nil {
			t.Fatal(err)
		}
		b, ok := recorded()[task.Name]
		if !ok || b.Hash != task.Hash || len(b.Least) != Windows(&cfg) {
			t.Errorf("%s: %d bounds for %d windows", task.Name, len(b.Least), Windows(&cfg))
			continue
		}
		if ref, ok := v.Reference(task); !ok || statistic.Mean(b.Least) > ref.Best || slices.Min(b.Least) <= 0 {
			t.Errorf("%s: the bound is %v in the mean, and the best rule reaches %v", task.Name, statistic.Mean(b.Least),
				ref.Best)
		}
		for _, c := range []struct {
			what   string
			values func(run []float64)
			want   string
		}{
			{"zeros", func(run []float64) { clear(run) }, "run 1, window 0: it says a " + metric(&cfg).Title + " of 0"},
			{"one window", func(run []float64) { run[3] *= 0.999 }, "run 1, window 3"},
			{"the bounds", func([]float64) {}, ""},
		} {
			r := agentRow(task.Name)
			for k := range r.Tasks[0].Values {
				copy(r.Tasks[0].Values[k], b.Least)
				c.values(r.Tasks[0].Values[k])
			}
			r.Digest = r.digest()
			name := filepath.Join(t.TempDir(), "row.json")
			if err := safefile.WriteJSON(name, r); err != nil {
				t.Fatal(err)
			}
			_, made := v.NewRow(&r.Results, "", "", r.Commands, Program{})
			_, read := v.ReadRow(name)
			dir := t.TempDir()
			if err := safefile.WriteJSON(filepath.Join(dir, resultsFile), &r.Results); err != nil {
				t.Fatal(err)
			}
			_, results := v.ReadResults(dir)
			for _, err := range []error{made, read, results} {
				if (err == nil) != (c.want == "") || err != nil &&
					(!strings.Contains(err.Error(), c.want) ||
						!strings.Contains(err.Error(), "no policy that finishes all jobs gets below")) {
					t.Errorf("%s, %s: got %v, expected %q", task.Name, c.what, err, c.want)
				}
			}
		}
	}
}

// Programs play windows over the bridge, which environments without a simulator do not have there.
func TestRowsOfProgramsAreOfTasksThatProgramsPlay(t *testing.T) {
	v := Numbered(1)
	for i := range v.Tasks {
		task := &v.Tasks[i]
		cfg, err := task.Config()
		if err != nil {
			t.Fatal(err)
		}
		r := agentRow(task.Name)
		r.Policy.Kind = KindExternal
		r.Tasks[0].Files, r.Tasks[0].Seeds, r.Tasks[0].Steps = nil, nil, nil
		for k := range r.Tasks[0].Values {
			for w := range r.Tasks[0].Values[k] {
				r.Tasks[0].Values[k][w] = 1e6
			}
		}
		_, err = v.NewRow(&r.Results, "", "", r.Commands, Program{})
		if cfg.Simulated() != (err == nil) || err != nil &&
			!strings.Contains(err.Error(), "no program can play it over the bridge") {
			t.Errorf("%s: got %v", task.Name, err)
		}
		if !cfg.Simulated() {
			continue
		}
		r.Tasks[0].Tries = 2
		if _, err := v.NewRow(&r.Results, "", "", r.Commands, Program{}); err == nil ||
			!strings.Contains(err.Error(), "has begun to play 2 times, and a row has one try") {
			t.Errorf("%s, twice: got %v", task.Name, err)
		}
	}
}

func TestBoundsAreRoundedDown(t *testing.T) {
	for _, x := range []float64{1, 0.3556591, 1.0000004, 123456.7, 123456, 9.999999, 1e-7, 17, 0.1 + 0.2} {
		y := roundDown(x)
		if y > x || y < x*(1-1.1e-5) || roundDown(y) != y {
			t.Errorf("%v becomes %v", x, y)
		}
	}
	if roundDown(0) != 0 || roundDown(-1) != 0 {
		t.Error("nothing is below 0")
	}
}
