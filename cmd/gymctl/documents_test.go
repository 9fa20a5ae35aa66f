package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/configs"
	"clustergym/experiments/config"
	"clustergym/experiments/workload"
)

func TestConfigShowAsJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"quickstart", "philly-192", "bandit-maml"} {
		var d struct {
			File, Kind string
			Config     json.RawMessage
		}
		out := must(t, "config", "show", name, "--json")
		strict(t, out, &d)
		if d.File != name || d.Kind == "" || strings.Count(out, "\n") != 1 {
			t.Errorf("%s: %s, kind %q", name, d.File, d.Kind)
		}
		// JSON is YAML, so the document's configuration is a file again, with the same text.
		write(t, "again.yaml", string(d.Config))
		if again, want := must(t, "config", "show", "again.yaml", "--kind", d.Kind), must(t, "config", "show", name); again != want {
			t.Errorf("%s read again\n%s\nwant\n%s", name, again, want)
		}
	}
	var d struct {
		Config struct {
			Eval  struct{ Windows int }
			Train struct{ Steps int64 }
		}
	}
	if err := json.Unmarshal([]byte(must(t, "config", "show", "quickstart", "--json", "--set", "eval.windows=7")), &d); err != nil || d.Config.Eval.Windows != 7 || d.Config.Train.Steps != 98304 {
		t.Errorf("%v: %+v", err, d)
	}
	wrong(t, []string{"config", "show", "quickstat", "--json"}, "did you mean quickstart?")
}

func TestConfigCheckAsJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "bad.yaml", "racks:\n  - nodes:\n      - gpus: -3\n        cpu: 4\n")
	var d struct {
		Files []checkedFile `json:"files"`
	}
	out := must(t, "config", "check", "quickstart", "philly-192", "--json")
	strict(t, out, &d)
	if len(d.Files) != 2 || !d.Files[0].OK || d.Files[1].Kind != "cluster" || d.Files[0].Faults == nil {
		t.Errorf("got %s", out)
	}
	code, out, said := gymctl(t, "config", "check", "philly-192", "bad.yaml", "none.yaml", "--json")
	strict(t, out, &d)
	_, _, plain := gymctl(t, "config", "check", "philly-192", "bad.yaml", "none.yaml")
	if code != exitMistake || said != plain || strings.Count(said, "\n") != 3 {
		t.Errorf("exit code %d, said %q, without --json %q", code, said, plain)
	}
	if f := d.Files[1]; f.OK || len(f.Faults) != 2 || f.Faults[0] != (fileFault{3, "racks[0].nodes[0].gpus", "-3", "0 to 1024", "bad.yaml:3: racks[0].nodes[0].gpus: got -3, want 0 to 1024"}) ||
		f.Faults[1].Line != 4 || f.Faults[1].Key != "" || !strings.Contains(f.Faults[1].Message, "did you mean cpus?") {
		t.Errorf("got %+v", f)
	}
	if f := d.Files[2]; f.OK || len(f.Faults) != 1 || !strings.HasPrefix(f.Faults[0].Message, "none.yaml: there is no such file or preset") {
		t.Errorf("got %+v", f)
	}
	code, out, said = gymctl(t, "config", "check", "philly-192", "--json", "--kind", "clutser")
	if code != exitMistake || out != "" || !strings.HasPrefix(said, `gymctl: --kind: `) {
		t.Errorf("an unknown kind: exit code %d, printed %q, said %q", code, out, said)
	}
}

func TestCkptVerifyAsJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	save(t)
	var d struct {
		Checkpoints []ckptVerified `json:"checkpoints"`
	}
	strict(t, must(t, "ckpt", "verify", "run", "--json"), &d)
	older, newer := filepath.Join("run", "checkpoints", "500"), filepath.Join("run", "checkpoints", "1000")
	if len(d.Checkpoints) != 2 || d.Checkpoints[0] != (ckptVerified{Dir: older, OK: true, Step: 500, Parts: 2, Bytes: 507}) || d.Checkpoints[1].Dir != newer {
		t.Errorf("got %+v", d)
	}
	write(t, filepath.Join(newer, "weights.bin"), "wrong!!")
	code, out, said := gymctl(t, "ckpt", "verify", "run", "--json")
	strict(t, out, &d)
	if c := d.Checkpoints; code != exitMistake || len(c) != 2 || !c[0].OK || c[1].OK || "gymctl: "+c[1].Fault+"\n" != said {
		t.Errorf("exit code %d, printed %s, said %q", code, out, said)
	}
	if code, out, _ := gymctl(t, "ckpt", "verify", "nowhere", "--json"); code != exitMistake || out != "" {
		t.Errorf("nothing to verify: exit code %d, printed %q", code, out)
	}
}

func TestWrittenTracesAsJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	type written struct {
		File, Format string
		Jobs         int
	}
	var s struct {
		written
		Seed     uint64
		Settings struct {
			Profile string
			Jobs    int
		}
	}
	if err := json.Unmarshal([]byte(must(t, "trace", "synth", "--jobs", "50", "--seed", "7", "-o", "jobs.csv.gz", "--json")), &s); err != nil {
		t.Fatal(err)
	}
	if s.written != (written{"jobs.csv.gz", "csv", 50}) || s.Seed != 7 || s.Settings.Profile != "philly" || s.Settings.Jobs != 50 {
		t.Errorf("got %+v", s)
	}
	write(t, "priority.csv", "submit_time,duration,num_gpu,priority\n0,5,1,3\n1,5,1,\n2,5,1,1\n")
	var c struct {
		written
		Trace workload.Info `json:"trace"`
		Lost  []lostField   `json:"lost"`
	}
	code, out, said := gymctl(t, "trace", "convert", "priority.csv", "--to", "swf", "-o", "out.swf", "--skip", "1", "--json")
	if code != exitDone || strings.Count(out, "\n") != 1 || !strings.Contains(said, "priorities") {
		t.Errorf("exit code %d, printed %q, said %q", code, out, said)
	}
	strict(t, out, &c)
	if c.written != (written{"out.swf", "swf", 2}) || c.Trace.File != "priority.csv" || c.Trace.Passed != 1 || len(c.Lost) != 1 || c.Lost[0] != (lostField{"priorities", 1}) {
		t.Errorf("got %+v", c)
	}
	for _, args := range []string{"synth --jobs 5 --json", "synth --jobs 5 --json -o -", "convert priority.csv --json"} {
		wrong(t, append([]string{"trace"}, strings.Fields(args)...), "--json: the document goes to standard output; want -o FILE for the trace")
	}
	if code, out, _ := gymctl(t, "trace", "convert", "none.csv", "--json", "-o", "x.csv"); code != exitMistake || out != "" {
		t.Errorf("no file to convert: exit code %d, printed %q", code, out)
	}
	if _, err := os.Stat("x.csv"); err == nil {
		t.Error("a mistake left a file")
	}
}

func TestJSONOfEveryPresetIsItsYAML(t *testing.T) {
	for _, name := range configs.Runs() {
		v, k, err := load(name, "")
		if err != nil || k.name != runKind {
			t.Fatal(name, k.name, err)
		}
		text, err := configs.JSON(v)
		if err != nil || !json.Valid(text) {
			t.Fatalf("%s: %v: %s", name, err, text)
		}
		again, err := config.Decode(name, text)
		if err != nil {
			t.Fatal(err)
		}
		a, err := configs.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		b, err := configs.Encode(&again)
		if err != nil || string(a) != string(b) {
			t.Errorf("%s: %v, read again\n%s\nwant\n%s", name, err, b, a)
		}
	}
}
