package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

const (
	// A table as a spreadsheet exports it, and one as Slurm's accounting prints it. Both are made up.
	export = "\ufeffJob;Submitted;Elapsed;GPUs\r\na;2024-03-01 12:00:00;01:00:00;2\r\nb;2024-03-01 12:00:30;1-00:00:00;0,5\r\n"
	sacct  = "JobID|User|Partition|Submit|Start|End|ElapsedRaw|TimelimitRaw|State|NNodes|NCPUS|AllocTRES|ReqTRES\n" +
		"7|ann|gpu|2024-03-01T12:00:00|2024-03-01T12:01:00|2024-03-01T12:02:00|60|5|COMPLETED|1|8|cpu=8,gres/gpu=2,mem=64G,node=1|gres/gpu:a100=2\n" +
		"7.batch|||2024-03-01T12:01:00|2024-03-01T12:01:00|2024-03-01T12:02:00|60||COMPLETED|1|8|cpu=8|\n" +
		"8_1|bob|gpu|2024-03-01T12:00:30|2024-03-01T12:01:00|2024-03-01T12:02:30|90||CANCELLED by 0|1|8|cpu=8,gres/gpu=4,mem=1G,node=1|\n" +
		"9|ann|gpu|2024-03-01T12:00:40|None|Unknown|0|5|PENDING|1|8||gres/gpu=2\n"
	map3 = "--columns=job_id=Job,submit_time=Submitted,duration=Elapsed,num_gpu=GPUs"
)

// Every verb that reads a trace takes --columns.
func TestColumnsOfAnExport(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "export.csv", export)
	if got, want := clitest.Must(t, "trace", "convert", "export.csv", map3),
		"0,3600,2,a,,,,,,,,,,,,,\n30,86400,0.5,b,,,,,,,,,,,,,\n"; !strings.HasSuffix(got, want) {
		t.Errorf("%q, want a header and %q", got, want)
	}
	for _, args := range [][]string{
		{"trace", "stats", "export.csv", map3},
		{"trace", "stats", "export.csv", "--columns", "submit_time=Submitted,duration=Elapsed", "--columns", "num_gpu=gpus",
			"--delimiter", "semicolon"},
		{"sim", "--trace", "export.csv", map3, "--cluster", "pool:4", "--policy", "fifo"},
		{"sim", "--trace", "export.csv", "--set", "trace.columns={submit_time: Submitted, duration: Elapsed, num_gpu: GPUs}",
			"--cluster", "pool:4", "--policy", "fifo"},
		{"sim", "--trace", "export.csv", "--set", "trace.columns.submit_time=Submitted", "--set",
			"trace.columns.duration=Elapsed", "--set", "trace.columns.num_gpu=GPUs", "--cluster", "pool:4", "--policy", "fifo"},
	} {
		if out := clitest.Must(t, args...); !strings.Contains(out, "export.csv (csv): 2 jobs") {
			t.Errorf("%v printed %s", args, out)
		}
	}
	clitest.Write(t, "whole.csv", "Start;Elapsed;GPUs\n0;3600;1\n600;1800;2\n")
	out := clitest.Must(t, "sim", "--peer", "dally-waiting-only", "--trace", "whole.csv", "--columns",
		"submit_time=Start,duration=Elapsed,num_gpu=GPUs",
		"--delimiter", "semicolon", "--mix", "dally", "--cluster", "dally:4x4", "--policy", "dally")
	if !strings.Contains(out, "whole.csv (csv): 2 jobs") {
		t.Errorf("sim --peer printed %s", out)
	}
	for _, c := range []struct{ args, want string }{
		{"trace stats export.csv",
			`gymctl: trace export.csv: its first line, "Job;Submitted;Elapsed;GPUs", is of no known format (gymctl trace formats lists them); csv needs submit_time, duration (or start_time and end_time) and num_gpu and found none of them; the nearest are "Submitted" and "Elapsed" and "GPUs": use --columns submit_time=Submitted,duration=Elapsed,num_gpu=GPUs (trace.columns)`},
		{"trace stats export.csv --columns submit=Submitted",
			`gymctl: --columns: got "submit=Submitted", want NAME=COLUMN with one of the format's names: submit_time, `},
		{"trace stats export.csv --columns submit_time=Submited",
			`gymctl: export.csv:1: columns: submit_time=Submited names no column of the file, which has Job, Submitted, Elapsed, GPUs; did you mean "Submitted"?`},
		{"trace stats export.csv --columns Submitted",
			`gymctl: --columns: got "Submitted", want NAME=COLUMN, joined by commas, as submit_time=Submit,duration=Elapsed`},
		{"trace stats export.csv --delimiter dash",
			`gymctl: --delimiter: got "dash", want comma, semicolon, tab, bar or the character itself`},
		{"train --columns submit_time=Submitted", `gymctl: --columns goes with --trace`},
		{"train -c cartpole-ppo --columns submit_time=Submitted", `gymctl: --columns goes with --trace`},
		{"train --trace export.csv --columns submit_time=Submitted",
			`no columns duration (or start_time and end_time), num_gpu; the nearest are "Elapsed" and "GPUs": use --columns duration=Elapsed,num_gpu=GPUs`},
		{"eval --trace export.csv " + map3, `too few jobs`},
		{"train --trace export.csv " + map3, `too few jobs`},
	} {
		code, _, said := clitest.Run(t, strings.Fields(c.args)...)
		if code != cli.ExitMistake || !strings.Contains(said, c.want) {
			t.Errorf("gymctl %s: exit code %d, said %s\nwant %s", c.args, code, said, c.want)
		}
	}
}

// sacct's jobs become equal jobs of the native format, and run.
func TestSlurmsAccounting(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "jobs.txt", sacct)
	code, _, said := clitest.Run(t, "trace", "convert", "jobs.txt", "--to", "csv", "-o", "jobs.csv")
	if code != cli.ExitDone || said != "gymctl: jobs.txt → jobs.csv (csv): 2 jobs, 1 left out, 0 moved\n" {
		t.Errorf("exit code %d, said %q", code, said)
	}
	want := "0,60,2,7,ann,gpu,a100,8,64,300,,,,,,,completed\n30,90,4,8_1,bob,gpu,,8,1,,,,,,,,cancelled\n"
	if got := clitest.Read(t, "jobs.csv"); !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want a header and %q", got, want)
	}
	if out := clitest.Must(t, "trace", "stats", "jobs.txt"); !strings.Contains(out,
		"jobs.txt (sacct): 2 jobs, 1 left out (never started: Start is not known)") {
		t.Errorf("stats printed %s", out)
	}
	times := regexp.MustCompile(`"metrics":.*?"events"`)
	simulated := func(file string) []string {
		return times.FindAllString(clitest.Must(t, "sim", "--trace", file, "--cluster", "pool:4", "--policy", "fifo,sjf",
			"--json"), -1)
	}
	if from, to := simulated("jobs.txt"), simulated("jobs.csv"); len(from) != 2 || !slices.Equal(from, to) {
		t.Errorf("%s\nand from the native format\n%s", from, to)
	}
	clitest.Write(t, "cut.txt", "       JobID   Elapsed\n------------ ----------\n7            00:01:00\n")
	if code, _, said := clitest.Run(t, "trace", "stats", "cut.txt"); code != cli.ExitMistake ||
		!strings.Contains(said, "run it with -P (--parsable2)") {
		t.Errorf("exit code %d, said %q", code, said)
	}
}
