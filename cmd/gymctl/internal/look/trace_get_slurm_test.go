package look_test

import (
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/look"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/live/slurm"
)

// books is a sacct that prints rows for one period, and fails in others.
type books struct {
	since, rows string
	err         error
	asked       []string
}

func (b *books) Run(ctx context.Context, c slurm.Call) error {
	b.asked = append(b.asked, strings.Join(c.Args, " "))
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.err != nil {
		return b.err
	}
	rows := ""
	if strings.Contains(b.asked[len(b.asked)-1], "-S "+b.since) {
		rows = strings.ReplaceAll(b.rows, "|", "\x1f")
	}
	return c.Out(strings.NewReader(rows))
}

const kept = "1|ann|lab|gpu|c|1706000000|1706000010|1706000020|10|60|COMPLETED|1|1|1G|gres/gpu=2,gres/gpu:a100=2|gres/gpu=2,gres/gpu:a100=2|g1|1706000000|train\n" +
	"2|bob|lab|cpu|c|1706000100|1706000110|1706000120|10|UNLIMITED|FAILED|1|1|1G|cpu=1|cpu=1|c1|1706000100|clean\n" +
	"3|bob|lab|cpu|c|1706000100|Unknown|Unknown|0|60|PENDING|1|1|1G||cpu=1|None assigned|Unknown|clean\n"

func ask(t *testing.T, b *books) {
	t.Helper()
	t.Chdir(t.TempDir())
	old := look.SlurmCommands
	look.SlurmCommands = func(*options.SlurmAccess) slurm.Runner { return b }
	t.Cleanup(func() { look.SlurmCommands = old })
}

func TestGetSlurmWritesATrace(t *testing.T) {
	b := &books{since: "2024-01-15T00:00:00", rows: kept}
	ask(t, b)
	out := clitest.Must(t, "trace", "get", "slurm", "-S", "2024-01-15", "-E", "2024-03-01")
	want := `slurm-jobs.txt.gz: 2 jobs of 2 users in 2 virtual clusters, over 1m40s
  GPUs      1 job; some ask for a100
  limits    1 job has a time limit, which is the estimate
  left out  1: never started: Start is not known
  try       gymctl trace stats slurm-jobs.txt.gz
`
	if out != want || len(b.asked) != 2 {
		t.Errorf("printed\n%swant\n%sasked %q", out, want, b.asked)
	}
	f, err := os.Open("slurm-jobs.txt.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil || !strings.HasSuffix(string(text), "\n"+kept) {
		t.Errorf("%v\n%s", err, text)
	}
	// The suggested next command works, and so does a document of it.
	if out := clitest.Must(t, "trace", "stats", "slurm-jobs.txt.gz"); !strings.Contains(out, "(sacct): 2 jobs") {
		t.Errorf("stats print %q", out)
	}
	var d look.FetchedHistory
	clitest.Strict(t,
		clitest.Must(t, "trace", "get", "slurm", "-S", "2024-01-15", "-E", "2024-02-01", "--vc", "account", "-o", "by.txt",
			"--json"), &d)
	if d.Rows != 3 || d.Jobs != 2 || d.GPUJobs != 1 || d.VCs != 1 || d.Estimates != 1 || len(d.Skipped) != 1 ||
		d.File != "by.txt" {
		t.Errorf("%+v", d)
	}
}

func TestGetSlurmFromAFile(t *testing.T) {
	folder, err := filepath.Abs(filepath.Join("..", "..", "..", "..", "traces", "sacct", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	b := &books{}
	ask(t, b)
	for _, name := range []string{"22.05.json", "23.11.json", "22.05.txt"} {
		file := filepath.Join(folder, name)
		if out := clitest.Must(t, "trace", "get", "slurm", "--from", file, "-o", "jobs.txt"); !strings.HasPrefix(out,
			"jobs.txt: 12 jobs of 1 user in 2 virtual clusters") || len(b.asked) > 0 {
			t.Errorf("%s: %s", name, out)
		}
		if out := clitest.Must(t, "trace", "get", "slurm", "--from", file, "-o", "by.txt", "--vc",
			"account"); !strings.HasPrefix(out, "by.txt: 12 jobs of 1 user in 1 virtual cluster") {
			t.Errorf("%s: %s", name, out)
		}
	}
}

func TestGetSlurmSaysWhatIsWrong(t *testing.T) {
	b := &books{err: &slurm.ExitError{Program: "sacct", Code: 1, Said: "Slurm accounting storage is disabled"}}
	ask(t, b)
	clitest.Write(t, "other.txt", "hello\n")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, cli.ExitMistake, "this Slurm keeps no accounts"},
		{[]string{"-S", "yesterday"}, cli.ExitMistake, `--since: got "yesterday", want 2024-01-31`},
		{[]string{"-S", "1d", "-E", "2d"}, cli.ExitMistake, "--since 1d: want a time before --until 2d"},
		{[]string{"--vc", "qos"}, cli.ExitMistake, `--vc: got "qos", want partition or account`},
		{[]string{"-o", ""}, cli.ExitMistake, `--output: got "", want FILE`},
		{[]string{"-o", "-", "--json"}, cli.ExitMistake, "want -o FILE"},
		{[]string{"--from", "none.json"}, cli.ExitMistake, "none.json: there is no such file"},
		{[]string{"--from", "other.txt"}, cli.ExitMistake, "other.txt: this is neither"},
		{[]string{"--from", "other.txt", "-S", "1d"}, cli.ExitMistake, "--since does not go with --from"},
		{[]string{"--from", "other.txt", "-o", "other.txt"}, cli.ExitMistake, "it is the input"},
		{[]string{"more"}, cli.ExitMistake, "flags only"},
	} {
		code, _, said := clitest.Run(t, append([]string{"trace", "get", "slurm"}, c.args...)...)
		if code != c.code || !strings.Contains(said, c.want) {
			t.Errorf("%q: code %d: %s", c.args, code, said)
		}
	}
	if _, err := os.Stat("slurm-jobs.txt.gz"); err == nil {
		t.Error("a file was left behind")
	}
	b.err = nil
	if code, _, said := clitest.Run(t, "trace", "get", "slurm"); code != cli.ExitDone ||
		!strings.Contains(said, "there is no job that has run and ended") {
		t.Errorf("code %d: %s", code, said)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var said strings.Builder
	if code := clitest.Execute(ctx, []string{"trace", "get", "slurm", "-o", "late.txt"}, io.Discard, &said); code !=
		cli.ExitInterrupted || !strings.Contains(said.String(), "nothing is written") {
		t.Errorf("interrupted: %d, %s", code, said.String())
	}
}

// Dumps of two months that overlap, text and JSON, become one table, with each job once and each header's columns
// renamed.
func TestDumpsThatWereJoined(t *testing.T) {
	t.Chdir(t.TempDir())
	const head = "JobID|User|Account|Partition|Submit|Start|End|ElapsedRaw|State|AllocTRES\n"
	clitest.Write(t, "both.txt",
		head+"1|ann|lab|gpu|10|10|70|60|COMPLETED|gres/gpu=2\n"+head+"1|ann|lab|gpu|10|10|70|60|COMPLETED|gres/gpu=2\n"+
			`{"jobs":[{"job_id":2,"user":"bob","account":"lab","partition":"gpu","allocation_nodes":1,"association":{},"state":{"current":["COMPLETED"]},"time":{"elapsed":60,"submission":20,"start":20,"end":80},"tres":{"allocated":[{"type":"gres","name":"gpu","count":1},{"type":"energy","count":18446744073709551614}]}}]}`+"\n")
	if out := clitest.Must(t, "trace", "get", "slurm", "--from", "both.txt", "--vc", "account", "-o",
		"jobs.txt"); !strings.Contains(out, "2 jobs of 2 users in 1 virtual cluster,") ||
		!strings.Contains(out, "left out  1: duplicate rows") {
		t.Error(out)
	}
	out := clitest.Must(t, "trace", "convert", "jobs.txt", "--to", "csv")
	if !strings.Contains(out, "0,60,2,1,ann,lab,") || !strings.Contains(out, "10,60,1,2,bob,lab,") {
		t.Error(out)
	}
	code, _, said := clitest.Run(t, "trace", "convert", "both.txt", "--to", "csv", "-o", "jobs.csv")
	if code != 0 || !strings.Contains(said, "note: 1 left out: duplicate rows of the same run") {
		t.Errorf("%d %s", code, said)
	}
	clitest.Write(t, "rows.txt", "1|ann|lab|gpu|2024-03-01T10:00:00|COMPLETED|cpu=8,gres/gpu=2\n")
	for _, args := range [][]string{{"trace", "stats", "rows.txt"},
		{"trace", "get", "slurm", "--from", "rows.txt", "-o", "x.txt"}} {
		if code, _, said := clitest.Run(t, args...); code != cli.ExitMistake ||
			!strings.Contains(said, "rows of sacct without its header") {
			t.Errorf("%v: %d %s", args, code, said)
		}
	}
}
