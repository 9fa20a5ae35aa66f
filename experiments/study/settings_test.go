package study

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"clustergym/configs"
	"clustergym/distributed/workqueue"
	"clustergym/internal/fault"
)

// knobs are the settings of the study tunable.
type knobs struct {
	Runs  int    `yaml:"runs"`
	Sizes []int  `yaml:"sizes"`
	Lease string `yaml:"lease"`
	Net   struct {
		Width int     `yaml:"width"`
		Rate  float64 `yaml:"rate"`
	} `yaml:"net"`
}

func (k *knobs) Validate() error {
	var l fault.List
	l.Add(k.Runs >= 1 && k.Runs <= 9, "runs", k.Runs, "1 to 9")
	for _, n := range k.Sizes {
		l.Add(n > 0, "sizes", n, "1 or more")
	}
	d, err := time.ParseDuration(k.Lease)
	l.Add(err == nil && d > 0, "lease", k.Lease, "a time")
	l.Add(k.Net.Width >= 1, "net.width", k.Net.Width, "1 or more")
	return l.Err()
}

const knobsYAML = `# Settings of tunable. A run is a run.
quick:
  runs: 2 # of each size
  sizes: [3, 4]
  lease: 1h
full:
  runs: 3
  sizes: [3, 4, 5]
  lease: 2h
  net: {width: 16}
`

// tunable is a study that has settings. Its cells say how often they were computed.
func tunable(computed func(key string)) Study {
	var plain knobs
	plain.Net.Width = 8
	settings := func(p Plan) (knobs, error) { return Settings("tunable", experimentYAML(knobsYAML), p, plain) }
	return Study{
		Name: "tunable", Title: "Tunable",
		Cells: func(p Plan) (all []Cell, err error) {
			k, err := settings(p)
			if err != nil {
				return nil, err
			}
			for _, n := range k.Sizes {
				for run := range k.Runs {
					key := fmt.Sprintf("size/%d/%d", n, run)
					all = append(all, Cell{Key: key, Input: []any{n, run, k.Lease, k.Net},
						Run: func(context.Context, *Bench) ([]Row, error) {
							computed(key)
							return []Row{{Table: "t", Labels: map[string]string{"size": fmt.Sprint(n), "seed": fmt.Sprint(run)},
								Metric: "value", Value: float64(n*k.Net.Width+run) / 3}}, nil
						}})
				}
			}
			return all, nil
		},
		Tables: func(Plan) []Table {
			return []Table{{Name: "t", Title: "Values", By: []string{"size"},
				Columns: []Column{{Title: "value", Metric: "value"},
					{Title: "most", Metric: "value", Stat: Maximum, Bare: true, Hidden: true}}}}
		},
	}
}

func set(changes ...string) Plan {
	return Plan{Quick: true, Workers: 2, Changes: Changes{Set: changes}}
}

func TestMistakesInSettingsNameTheirSource(t *testing.T) {
	for _, c := range []struct {
		changes Changes
		want    string
	}{
		{Changes{Set: []string{"run=3"}},
			`set "run=3": run: unknown key; did you mean runs? Known are runs, sizes, lease, net`},
		{Changes{Set: []string{"zebra=3"}}, `set "zebra=3": zebra: unknown key; known are runs, sizes, lease, net`},
		{Changes{Set: []string{"net.wdth=3"}}, `set "net.wdth=3": net.wdth: unknown key; did you mean width?`},
		{Changes{Set: []string{"runs"}}, `set "runs": got "runs", want KEY.PATH=VALUE`},
		{Changes{Set: []string{"runs=many"}}, `set "runs=many": runs: got "many", want a whole number`},
		{Changes{Set: []string{"runs=99"}}, `set "runs=99": runs: got 99, want 1 to 9`},
		{Changes{Set: []string{"runs=99", "runs=4"}}, ``},
		{Changes{Set: []string{"lease=5x", "runs=4"}}, `set "lease=5x": lease: got "5x", want a time`},
		{Changes{Set: []string{"sizes=[3, -1]"}}, `set "sizes=[3, -1]": sizes: got -1, want 1 or more`},
		{Changes{Set: []string{"sizes[7]=2"}}, `set "sizes[7]=2": sizes[7]: there is no such element; sizes has 2`},
		{Changes{Set: []string{"runs+=2"}}, `set "runs+=2": runs: is no list, to which += adds; want runs=VALUE`},
		{Changes{Set: []string{"net={width: 0}"}}, `set "net={width: 0}": net.width: got 0, want 1 or more`},
		{Changes{Set: []string{"sizes=[3, 4, 3]"}},
			`with these settings two cells are called "size/3/0"; want each name and value of a list once, of letters, digits and -._=`},
		{Changes{File: "mine.yaml", Text: "runs: 2\nsize: [3]\n"}, `mine.yaml:2: size: unknown key; did you mean sizes?`},
		{Changes{File: "mine.yaml", Text: "runs: 2\n\nlease: 5x\n"}, `mine.yaml:3: lease: got "5x", want a time`},
		{Changes{File: "mine.yaml", Text: "runs: [\n"}, `mine.yaml:1: not YAML: did not find expected node content`},
		{Changes{File: "mine.yaml", Text: "quick: {runs: 2}\n"},
			`mine.yaml:1: quick: unknown key; known are runs, sizes, lease, net`},
		{Changes{File: "mine.yaml", Text: "runs: 5\n", Set: []string{"runs=0"}}, `set "runs=0": runs: got 0, want 1 to 9`},
	} {
		dir := filepath.Join(t.TempDir(), "out")
		_, err := Run(t.Context(), tunable(func(string) {}),
			Options{Dir: dir, Plan: Plan{Quick: true, Workers: 1, Changes: c.changes}})
		var input *fault.Mistake
		switch {
		case c.want == "" && err == nil:
		case err == nil || err.Error() != c.want || !errors.As(err, &input):
			t.Errorf("%+v: %v\nwant %s", c.changes, err, c.want)
		default:
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("%+v: a mistake left a folder behind", c.changes)
			}
		}
	}
	toyed := new(toy).study()
	if _, err := Run(t.Context(), toyed, Options{Dir: t.TempDir(), Plan: set("x=1")}); err == nil ||
		err.Error() != "experiment toy has no settings that can be changed" {
		t.Errorf("a study without settings: %v", err)
	}
}

func TestChangedSettingsAreSaidAndNotCompared(t *testing.T) {
	var computed []string
	s := tunable(func(key string) { computed = append(computed, key) })
	dir := filepath.Join(t.TempDir(), "out")
	one := func(p Plan) *Report {
		t.Helper()
		computed = nil
		p.Workers = 1
		r, err := Run(t.Context(), s, Options{Dir: dir, Plan: p})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	file := func(name string) string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	one(set())
	if len(computed) != 4 || strings.Contains(file("table.txt"), "changed") {
		t.Fatalf("as recorded: computed %q\n%s", computed, file("table.txt"))
	}
	s.Expected = []byte(file("results.csv"))

	// A list and a nested key; what does not depend on them is kept.
	r := one(set("sizes+=5"))
	if len(computed) != 2 || !strings.Contains(file("table.txt"), "changed   sizes[2]: nothing → 5\n") {
		t.Errorf("another size: computed %q\n%s", computed, file("table.txt"))
	}
	if d := r.Deviation(); d == nil || d.Skipped != "settings are changed (above)" || d.Figures != 0 {
		t.Errorf("changed settings are compared: %+v", d)
	}
	r = one(set("sizes=[7]", "net.width=2", "runs=1"))
	for name, want := range map[string]string{
		"table.txt":   "changed   net.width: 8 → 2\n",
		"index.html":  "<dt>changed</dt><dd>sizes: [3, 4] → [7]</dd>",
		"results.csv": "\nquick --set,t,7,value,value,mean,4.66",
	} {
		if !strings.Contains(file(name), want) {
			t.Errorf("%s lacks %q:\n%s", name, want, file(name))
		}
	}
	var doc struct {
		Changed []configs.Change `json:"changed_settings"`
	}
	if b, err := json.Marshal(r); err != nil {
		t.Error(err)
	} else if err := json.Unmarshal(b, &doc); err != nil || len(doc.Changed) != 3 ||
		doc.Changed[0] != (configs.Change{Key: "runs", From: "2", To: "1"}) {
		t.Errorf("%v %+v", err, doc)
	}

	// Back again: the folder still works, and is compared.
	r = one(set("net.width=8", "runs=2"))
	if d := r.Deviation(); d == nil || d.Skipped != "" || d.Figures == 0 || d.Equal != d.Figures || len(d.Missing) > 0 {
		t.Errorf("values that are those of the recorded form: %+v", d)
	}
	if one(set()); len(computed) != 0 {
		t.Errorf("computed again: %q", computed)
	}

	// With recorded workloads the rows that were recorded with them count.
	s.Expected = append(s.Expected, "quick --data,t,3,value,value,mean,99,,,1,1,,\n"...)
	p := set()
	p.Data = dir
	if d := one(p).Deviation(); d.Figures != 4 || d.Equal != 3 || len(d.Others) != 1 || d.Others[0].Expected != 99 {
		t.Errorf("with --data: %+v", d)
	}
	if d := one(set()).Deviation(); d.Equal != 4 || len(d.Missing) > 0 {
		t.Errorf("without --data: %+v", d)
	}
}

func TestSettingsAreShownInTheWordsOfTheFile(t *testing.T) {
	for _, c := range []struct {
		p    Plan
		want string
	}{
		{Plan{Quick: true},
			"# Settings of tunable. A run is a run.\nruns: 2 # of each size\nsizes: [3, 4]\nlease: 1h\nnet:\n  width: 8\n  rate: 0\n"},
		{Plan{Changes: Changes{Set: []string{"sizes+=[6, 7]", "net.width=4"}}}, `# Settings of tunable. A run is a run.
runs: 3 # of each size
sizes: [3, 4, 5, 6, 7]
lease: 2h
net: {width: 4}
# changed: sizes[3]: nothing → 6
# changed: sizes[4]: nothing → 7
# changed: net.width: 16 → 4
`},
	} {
		shown, err := ShowSettings(tunable(func(string) {}), c.p)
		if err != nil {
			t.Fatal(err)
		}
		text := string(shown.YAML())
		if text != c.want {
			t.Errorf("got\n%s\nwant\n%s", text, c.want)
		}
		again, err := ShowSettings(tunable(func(string) {}),
			Plan{Quick: c.p.Quick, Changes: Changes{File: "mine.yaml", Text: text}})
		if err != nil || string(again.YAML()) != text {
			t.Errorf("%v: what is shown is no file of settings:\n%s", err, text)
		}
		b, err := json.Marshal(shown)
		if err != nil || !strings.Contains(string(b), `"settings":{"runs":`) {
			t.Errorf("%v: %s", err, b)
		}
	}
	if _, err := ShowSettings(tunable(func(string) {}), set("lease=x")); err == nil ||
		err.Error() != `set "lease=x": lease: got "x", want a time` {
		t.Errorf("a wrong value: %v", err)
	}
	if _, err := ShowSettings(new(toy).study(), Plan{}); err == nil {
		t.Error("a study without settings has shown some")
	}
}

// Workers get the changes with the plan, and give the same bytes.
func TestWorkersHaveTheChangedSettings(t *testing.T) {
	s := tunable(func(string) {})
	p := set("sizes=[2, 6]", "net.width=3")
	p.Changes.File, p.Changes.Text = "mine.yaml", "runs: 4\nlease: 30m\n"
	here := filepath.Join(t.TempDir(), "here")
	if _, err := Run(t.Context(), s, Options{Dir: here, Plan: p}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	dir := filepath.Join(t.TempDir(), "there")
	ended := make(chan error, 1)
	r, err := Run(ctx, s, Options{Dir: dir, Plan: p, Queue: func(ctx context.Context) (*workqueue.Coordinator, error) {
		q, err := workqueue.Listen(ctx,
			workqueue.Options{Listen: "127.0.0.1:0", Dir: filepath.Join(dir, "queue"), Job: s.Name, Token: testToken,
				Build: "test", Workers: 1, Tries: 10, AckWait: time.Second})
		if err != nil {
			return nil, err
		}
		go func() {
			ended <- workqueue.Work(ctx, workqueue.WorkOptions{
				URL: q.URL(), Token: testToken, Name: "w", Slots: 1, Workers: 1, Build: "test", Patience: time.Minute,
				Handlers: map[string]workqueue.Handler{
					CellKind: Handler(func(string) (Study, error) { return tunable(func(string) {}), nil }, "")},
			})
		}()
		return q, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Cells != 8 {
		t.Errorf("%d cells, want 2 sizes of 4 runs", r.Cells)
	}
	for _, name := range []string{"rows.csv", "results.csv", "table.txt", "index.html"} {
		a, err := os.ReadFile(filepath.Join(here, name))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(a) != string(b) {
			t.Errorf("%s: %v, want the same bytes as without workers", name, err)
		}
	}
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// experimentYAML returns the files of a study that has these settings.
func experimentYAML(text string) fs.FS {
	return fstest.MapFS{"experiment.yaml": {Data: []byte(text)}}
}
