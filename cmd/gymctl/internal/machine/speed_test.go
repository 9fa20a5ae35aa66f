package machine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/internal/raced"
	"clustergym/lab/speed"
)

func TestBenchPrintsOneDocumentAndProgressApart(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "small.csv", "job_id,submit_time,duration,num_gpu\nA,0,100,2\nB,5,10,1\n")
	code, out, notes := clitest.Run(t, "speed", "--quick", "--trace", "small.csv", "--cluster", "pool:2", "--policy",
		"fifo,sjf+skip", "--json")
	if code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, notes)
	}
	var r speed.Report
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 2 || r.Rows[0].Policy != "fifo+strict" || r.Rows[0].Jobs != 2 || r.Rows[0].Rate <= 0 ||
		r.Rows[1].Policy != "sjf+skip" || r.Machine.Processors < 1 {
		t.Errorf("%s", out)
	}
	if !strings.Contains(notes, "gymctl: simulator: small.csv, pool:2, sjf+skip\n") {
		t.Errorf("progress %q", notes)
	}
}

func TestBenchMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "small.csv", "job_id,submit_time,duration,num_gpu\nA,0,100,2\n")
	for _, c := range []struct{ args, want string }{
		{"speed simulater", `speed: group "simulater" is unknown; did you mean simulator?`},
		{"speed --cluster pool:2", `--cluster: got "pool:2", want nothing without a trace`},
		{"bench simulater", `speed: group "simulater" is unknown; did you mean simulator?`}, // the former name
		{"speed envs --long", "--long: got true, want false where the simulator is not measured"},
		{"speed --trace small.csv", "--cluster: got"},
		{"speed --trace gone.csv --cluster pool:2", "trace gone.csv: there is no such file"},
		{"speed --trace small.csv --cluster pool:2 --policy fifo,sfj", `--policy: got "sfj"`},
		{"speed --trace small.csv --cluster pool:1", "1 of 1 job can never fit cluster pool:1"},
		{"speed --trace=", `--trace: got "", want FILE`},
	} {
		code, out, err := clitest.Run(t, strings.Fields(c.args)...)
		if code != cli.ExitMistake || out != "" || !strings.Contains(err, c.want) {
			t.Errorf("%s: exit code %d, printed %q and %q, want %q", c.args, code, out, err, c.want)
		}
	}
}

// An interrupt ends the program at once and deletes the files that --long wrote.
func TestBenchIsInterrupted(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	code := clitest.Execute(ctx, []string{"bench", "--quick", "--long", "simulator"}, &out,
		writer(func(p []byte) (int, error) {
			if bytes.Contains(p, []byte("fifo+strict+easy")) { // the log is written and about to be read
				cancel()
			}
			return len(p), nil
		}))
	if code != cli.ExitInterrupted || out.Len() > 0 {
		t.Errorf("exit code %d, printed %q", code, out.String())
	}
	if left, err := filepath.Glob(filepath.Join(tmp, "gymctl-bench-*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left behind (%v)", left, err)
	}
	if _, err := os.Stat(tmp); err != nil {
		t.Error(err)
	}
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// Ranks are processes of this program; without PyTorch they are measured alone.
func TestBenchMeasuresRanks(t *testing.T) {
	if raced.On || testing.Short() {
		t.Skip("starts 42 processes, which takes too long with -short and under the race detector")
	}
	t.Setenv(clitest.AsProgram, "1")
	var report struct {
		Ranks []struct {
			Ranks, Floats int
			P50           float64 `json:"p50_us"`
			Gloo          float64 `json:"gloo_p50_us"`
		}
	}
	if err := json.Unmarshal([]byte(clitest.Must(t, "speed", "ranks", "--quick", "--json", "--python", "false")),
		&report); err != nil {
		t.Fatal(err)
	}
	if len(report.Ranks) != 12 {
		t.Fatalf("%d rows, want 4 sizes of 2, 4 and 8 ranks", len(report.Ranks))
	}
	for i, r := range report.Ranks {
		if r.Ranks != 2<<(i/4) || r.Floats != []int{10, 10_000, 100_000, 1_000_000}[i%4] || !(r.P50 > 0) || r.Gloo != 0 {
			t.Errorf("row %d: %+v", i, r)
		}
	}
}
