package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/look"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/configs"
	"clustergym/lab/config"
	"clustergym/lab/workload"
)

func TestConfigShowAsJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"quickstart", "philly-192", "bandit-maml"} {
		var d struct {
			File, Kind string
			Config     json.RawMessage
		}
		out := clitest.Must(t, "config", "show", name, "--json")
		clitest.Strict(t, out, &d)
		if d.File != name || d.Kind == "" || strings.Count(out, "\n") != 1 {
			t.Errorf("%s: %s, kind %q", name, d.File, d.Kind)
		}
		// JSON is YAML, so the document's configuration is a file again, with the same text.
		clitest.Write(t, "again.yaml", string(d.Config))
		if again, want := clitest.Must(t, "config", "show", "again.yaml", "--kind", d.Kind),
			clitest.Must(t, "config", "show", name); again != want {
			t.Errorf("%s read again\n%s\nwant\n%s", name, again, want)
		}
	}
	var d struct {
		Config struct {
			Eval  struct{ Windows int }
			Train struct{ Steps int64 }
		}
	}
	if err := json.Unmarshal([]byte(clitest.Must(t, "config", "show", "quickstart", "--json", "--set", "eval.windows=7")),
		&d); err != nil || d.Config.Eval.Windows != 7 || d.Config.Train.Steps != 393216 {
		t.Errorf("%v: %+v", err, d)
	}
	clitest.Wrong(t, []string{"config", "show", "quickstat", "--json"}, "did you mean quickstart?")
}

func TestConfigCheckAsJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "bad.yaml", "racks:\n  - nodes:\n      - gpus: -3\n        cpu: 4\n")
	var d struct {
		Files []look.CheckedFile `json:"files"`
	}
	out := clitest.Must(t, "config", "check", "quickstart", "philly-192", "--json")
	clitest.Strict(t, out, &d)
	if len(d.Files) != 2 || !d.Files[0].OK || d.Files[1].Kind != "cluster" || d.Files[0].Faults == nil {
		t.Errorf("got %s", out)
	}
	code, out, said := clitest.Run(t, "config", "check", "philly-192", "bad.yaml", "none.yaml", "--json")
	clitest.Strict(t, out, &d)
	_, _, plain := clitest.Run(t, "config", "check", "philly-192", "bad.yaml", "none.yaml")
	if code != cli.ExitMistake || said != plain || strings.Count(said, "\n") != 3 {
		t.Errorf("exit code %d, said %q, without --json %q", code, said, plain)
	}
	if f := d.Files[1]; f.OK || len(f.Faults) != 2 ||
		f.Faults[0] !=
			(look.FileFault{Line: 3, Key: "racks[0].nodes[0].gpus", Got: "-3", Want: "0 to 1024",
				Message: "bad.yaml:3: racks[0].nodes[0].gpus: got -3, want 0 to 1024"}) ||
		f.Faults[1].Line != 4 || f.Faults[1].Key != "" || !strings.Contains(f.Faults[1].Message, "did you mean cpus?") {
		t.Errorf("got %+v", f)
	}
	if f := d.Files[2]; f.OK || len(f.Faults) != 1 ||
		!strings.HasPrefix(f.Faults[0].Message, "none.yaml: there is no such file or preset") {
		t.Errorf("got %+v", f)
	}
	code, out, said = clitest.Run(t, "config", "check", "philly-192", "--json", "--kind", "clutser")
	if code != cli.ExitMistake || out != "" || !strings.HasPrefix(said, `gymctl: --kind: `) {
		t.Errorf("an unknown kind: exit code %d, printed %q, said %q", code, out, said)
	}
}

func TestCkptVerifyAsJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Save(t)
	var d struct {
		Checkpoints []look.CkptVerified `json:"checkpoints"`
	}
	clitest.Strict(t, clitest.Must(t, "ckpt", "verify", "run", "--json"), &d)
	older, newer := filepath.Join("run", "checkpoints", "500"), filepath.Join("run", "checkpoints", "1000")
	if len(d.Checkpoints) != 2 || d.Checkpoints[0] !=
		(look.CkptVerified{Dir: older, OK: true, Step: 500, Parts: 2, Bytes: 507}) || d.Checkpoints[1].Dir != newer {
		t.Errorf("got %+v", d)
	}
	clitest.Write(t, filepath.Join(newer, "weights.bin"), "wrong!!")
	code, out, said := clitest.Run(t, "ckpt", "verify", "run", "--json")
	clitest.Strict(t, out, &d)
	if c := d.Checkpoints; code != cli.ExitMistake || len(c) != 2 || !c[0].OK || c[1].OK ||
		"gymctl: "+c[1].Fault+"\n" != said {
		t.Errorf("exit code %d, printed %s, said %q", code, out, said)
	}
	if code, out, _ := clitest.Run(t, "ckpt", "verify", "nowhere", "--json"); code != cli.ExitMistake || out != "" {
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
	if err := json.Unmarshal(
		[]byte(clitest.Must(t, "trace", "synth", "--jobs", "50", "--seed", "7", "-o", "jobs.csv.gz", "--json")), &s); err !=
		nil {
		t.Fatal(err)
	}
	if s.written != (written{"jobs.csv.gz", "csv", 50}) || s.Seed != 7 || s.Settings.Profile != "philly" ||
		s.Settings.Jobs != 50 {
		t.Errorf("got %+v", s)
	}
	clitest.Write(t, "priority.csv", "submit_time,duration,num_gpu,priority\n0,5,1,3\n1,5,1,\n2,5,1,1\n")
	var c struct {
		written
		Trace workload.Info    `json:"trace"`
		Lost  []look.LostField `json:"lost"`
	}
	code, out, said := clitest.Run(t, "trace", "convert", "priority.csv", "--to", "swf", "-o", "out.swf", "--skip", "1",
		"--json")
	if code != cli.ExitDone || strings.Count(out, "\n") != 1 || !strings.Contains(said, "priorities") {
		t.Errorf("exit code %d, printed %q, said %q", code, out, said)
	}
	clitest.Strict(t, out, &c)
	if c.written != (written{"out.swf", "swf", 2}) || c.Trace.File != "priority.csv" || c.Trace.Passed != 1 ||
		len(c.Lost) != 1 || c.Lost[0] != (look.LostField{What: "priorities", Jobs: 1}) {
		t.Errorf("got %+v", c)
	}
	for _, args := range []string{"synth --jobs 5 --json", "synth --jobs 5 --json -o -", "convert priority.csv --json"} {
		clitest.Wrong(t, append([]string{"trace"}, strings.Fields(args)...),
			"--json: the document goes to standard output; want -o FILE for the trace")
	}
	if code, out, _ := clitest.Run(t, "trace", "convert", "none.csv", "--json", "-o", "x.csv"); code != cli.ExitMistake ||
		out != "" {
		t.Errorf("no file to convert: exit code %d, printed %q", code, out)
	}
	if _, err := os.Stat("x.csv"); err == nil {
		t.Error("a mistake left a file")
	}
}

func TestJSONOfEveryPresetIsItsYAML(t *testing.T) {
	for _, name := range configs.Runs() {
		v, k, err := options.Load(name, "")
		if err != nil || k.Name != options.RunKind {
			t.Fatal(name, k.Name, err)
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
