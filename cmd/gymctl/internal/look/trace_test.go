package look_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/look"
	"clustergym/lab/workload"
)

func TestSynthRepeatsAndPacks(t *testing.T) {
	t.Chdir(t.TempDir())
	plain := clitest.Must(t, "trace", "synth", "--jobs", "50", "--seed", "7")
	if n := strings.Count(plain, "\n"); n != 51 || !strings.HasPrefix(plain, "submit_time,duration,num_gpu,") {
		t.Errorf("%d lines, beginning with %.40q; want a header and 50 jobs", n, plain)
	}
	if clitest.Must(t, "trace", "synth", "--jobs", "50", "--seed", "7", "-o", "-") != plain {
		t.Error("the same seed gave other jobs")
	}
	if clitest.Must(t, "trace", "synth", "--jobs", "50", "--seed", "8") == plain {
		t.Error("another seed gave the same jobs")
	}
	clitest.Write(t, "c.yaml", "jobs: 50\nmax_gpus: 2\n")
	for _, name := range []string{"a.csv", "a.csv.gz", "a.csv.zst"} {
		if out := clitest.Must(t, "trace", "synth", "-c", "c.yaml", "--set", "max_gpus=0", "--seed", "7", "-o", name); out !=
			"" {
			t.Errorf("-o %s printed %q", name, out)
		}
		if packed := clitest.Read(t, name) != plain; packed != (name != "a.csv") {
			t.Errorf("%s is packed: %v", name, packed)
		}
		if got := clitest.Must(t, "trace", "convert", name); got != plain {
			t.Errorf("%s: converting the native format into itself changed it", name)
		}
	}
}

// Generated users, virtual clusters and names survive the file.
func TestSynthWritesUsersAndNames(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Must(t, "trace", "synth", "--profile", "philly-users", "--jobs", "400", "-o", "jobs.csv")
	got := clitest.Must(t, "trace", "stats", "jobs.csv")
	for _, want := range []string{"\nusers ", "\nnames ", " % of jobs come after one of the same user and name\n",
		"\nvirtual cluster "} {
		if !strings.Contains(got, want) {
			t.Errorf("trace stats does not have %q:\n%s", want, got)
		}
	}
	clitest.Must(t, "trace", "synth", "--jobs", "400", "-o", "plain.csv")
	if got := clitest.Must(t, "trace", "stats", "plain.csv"); strings.Contains(got, "\nnames ") {
		t.Errorf("profile philly has names:\n%s", got)
	}
}

func TestSynthMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "bad.yaml", "profile: mars\njobs: 0\nrats: 2\n")
	clitest.Write(t, "jobs.csv", "old\n")
	for _, c := range []struct{ args, want string }{
		{"-c none.yaml", "gymctl: none.yaml: there is no such file\n"},
		{"-c bad.yaml",
			"gymctl: bad.yaml:1: profile: got \"mars\", want one of dally, dally-batch, dally-multi, helios, hpc, lublin, philly, philly-users, poisson, poisson-constant, poisson-hyper, proximity\ngymctl: bad.yaml:2: jobs: got 0, want 1 to 20000000\n" +
				"gymctl: bad.yaml:3: rats: unknown key; did you mean rate?\n"},
		{"--set rats=2", "gymctl: --set \"rats=2\": rats: unknown key; did you mean rate?\n"},
		{"--set rate", "gymctl: --set \"rate\": got \"rate\", want KEY.PATH=VALUE\n"},
		{"--set rate=fast", "gymctl: --set \"rate=fast\": "},
		{"--jobs 0 -o jobs.csv", "gymctl: jobs: got 0, want 1 to 20000000\n"},
		{"--jobs 5 -o no/where.csv", "gymctl: output file no/where.csv: there is no folder no\n"},
		{"--jobs 5 -o .", "gymctl: output file .: this is a folder\n"},
	} {
		code, out, said := clitest.Run(t, append([]string{"trace", "synth"}, strings.Fields(c.args)...)...)
		if code != cli.ExitMistake || out != "" || !strings.HasPrefix(said, c.want) {
			t.Errorf("gymctl trace synth %s: exit code %d, printed %q, said %q; want 2, nothing, %q", c.args, code, out, said,
				c.want)
		}
	}
	if got := clitest.Read(t, "jobs.csv"); got != "old\n" {
		t.Errorf("the old file holds %q", got)
	}
}

const log = "; MaxProcs: 64\n1 0 -1 100 4 -1 2048 4 200 -1 1 3 1 -1 -1 -1 -1 -1\n2 5 -1 0 4 -1 -1 4 200 -1 1 3 1 -1 -1 -1 -1 -1\n" +
	"3 6 -1 50 8 -1 -1 8 -1 -1 0 4 1 -1 -1 -1 -1 -1\n"

func TestConvertWritesWhatTheLogSays(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "log.swf", log)
	code, out, said := clitest.Run(t, "trace", "convert", "log.swf", "--to", "csv", "-o", "log.csv")
	if code != cli.ExitDone || out != "" || said != "gymctl: log.swf → log.csv (csv): 2 jobs, 1 left out, 0 moved\n" {
		t.Errorf("exit code %d, printed %q, said %q", code, out, said)
	}
	want := ",status,group\n0,100,4,1,3,1,,,0.0078125,200,,,,,,,completed,1\n6,50,8,3,4,1,,,,,,,,,,,failed,1\n"
	if got := clitest.Read(t, "log.csv"); !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want a header and %q", got, want)
	}
	if code, _, said := clitest.Run(t, "trace", "convert", "log.swf", "--to", "xls"); code != cli.ExitMistake ||
		said != "gymctl: --to: got \"xls\", want csv or swf\n" {
		t.Errorf("exit code %d, said %q", code, said)
	}
	clitest.Write(t, "log.csv", "old\n")
	clitest.Write(t, "broken.swf", log+"4 7 -1 x 8 -1 -1 8 -1 -1 0 4 1 -1 -1 -1 -1 -1\n")
	code, _, said = clitest.Run(t, "trace", "convert", "broken.swf", "-o", "log.csv")
	if code != cli.ExitMistake || !strings.HasPrefix(said, "gymctl: broken.swf:5: run time: got \"x\", want ") ||
		clitest.Read(t, "log.csv") != "old\n" {
		t.Errorf("exit code %d, said %q, the old file holds %q", code, said, clitest.Read(t, "log.csv"))
	}
}

func TestStatsOfALog(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "log.swf", log)
	out := clitest.Must(t, "trace", "stats", "log.swf", "--json")
	want := strings.Fields(`trace trace.file trace.format trace.read trace.jobs trace.dropped trace.skipped trace.skipped.reason trace.skipped.count
trace.moved trace.repeated trace.assumed trace.procs trace.sha256
first_s last_s span_s jobs_per_hour duration_s duration_s.p50 duration_s.p90 duration_s.p99 duration_s.mean duration_s.max gpu_hours mean_gpus
sizes sizes.gpus sizes.jobs sizes.share sizes.gpu_hours users groups vcs vcs.name vcs.jobs models
statuses statuses.completed statuses.failed statuses.cancelled statuses.unknown no_estimate zero_duration shared_gpu
carry carry.deadlines carry.elastic carry.typed carry.cores carry.iterations carry.priorities carry.profiles carry.graphs carry.tasks carry.edges`)
	if got := clitest.Keys(t, out); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("keys %v, want %v", got, want)
	}
	var d look.Stats
	clitest.Strict(t, out, &d)
	if d.Trace.Jobs != 2 || d.Trace.Dropped != 1 || d.Trace.Procs != 64 || d.SpanS != 6 || d.Duration.Mean != 75 ||
		d.Duration.Max != 100 ||
		d.GPUHours != 800./3600 || d.Users != 2 || d.NoEstimate != 1 ||
		d.Statuses != (look.Statuses{Completed: 1, Failed: 1}) {
		t.Errorf("got %+v", d)
	}
	text := clitest.Must(t, "trace", "stats", "log.swf")
	for _, line := range []string{"log.swf (swf): 2 jobs, 1 left out (run time 0 or unknown)",
		"run time    p50 100 s, p90 100 s, p99 100 s, mean 75 s, max 100 s", "\n3-4      1   50.0 %"} {
		if !strings.Contains(text, line) {
			t.Errorf("%q is missing in\n%s", line, text)
		}
	}
	if code, _, said := clitest.Run(t, "trace", "stats", "log.swf", "--skip", "2"); code != cli.ExitMistake ||
		!strings.Contains(said, "there are no jobs") {
		t.Errorf("no jobs: exit code %d, said %q", code, said)
	}
}

// What is known of which jobs are alike is kept and counted; nothing is said of it for traces without.
func TestNamesAndGroupsAreKeptAndCounted(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "jobs.csv",
		"submit_time,duration,num_gpu,user,vc,model,Job Name,account\n0,5,1,ann,a,,train.sh,lab\n1,5,1,bob,a,,train.sh,\n2,5,1,ann,a,m,train.sh,lab\n3,5,1,ann,a,,,\n")
	converted := clitest.Must(t, "trace", "convert", "jobs.csv")
	want := "submit_time,duration,num_gpu,job_id,user,vc,gpu_type,num_cpu,mem_gb,estimate,model,iterations,deadline,priority,min_gpu,max_gpu,status,name,group\n" +
		"0,5,1,0,ann,a,,,,,,,,,,,,train.sh,lab\n1,5,1,1,bob,a,,,,,,,,,,,,train.sh,\n2,5,1,2,ann,a,,,,,m,,,,,,,train.sh,lab\n3,5,1,3,ann,a,,,,,,,,,,,,,\n"
	if converted != want {
		t.Errorf("got %q, want %q", converted, want)
	}
	clitest.Write(t, "again.csv", converted)
	if again := clitest.Must(t, "trace", "convert", "again.csv"); again != want {
		t.Errorf("a second time %q", again)
	}
	var d look.Stats
	clitest.Strict(t, clitest.Must(t, "trace", "stats", "jobs.csv", "--json"), &d)
	if d.Users != 2 || d.Groups != 1 || d.Names != 1 || d.Repeats != 1 {
		t.Errorf("%d users, %d groups, %d names, %d repeats", d.Users, d.Groups, d.Names, d.Repeats)
	}
	if text := clitest.Must(t, "trace", "stats", "jobs.csv"); !strings.Contains(text,
		"\nusers       2\ngroups      1\nnames       1; 25.0 % of jobs come after one of the same user and name\n") {
		t.Errorf("no counts in\n%s", text)
	}
	code, out, said := clitest.Run(t, "trace", "convert", "jobs.csv", "--to", "swf")
	if code != cli.ExitDone || !strings.HasSuffix(out,
		" 1 1 2 -1 -1 -1 -1\n4 3 -1 5 1 -1 -1 1 -1 -1 -1 1 1 -1 -1 -1 -1 -1\n") ||
		said != "gymctl: note: swf has no place for names (1 job), groups (2 jobs)\n" {
		t.Errorf("exit code %d, printed %q, said %q", code, out, said)
	}
	clitest.Write(t, "plain.csv", "submit_time,duration,num_gpu,user,name\n0,5,1,ann,\n")
	if out := clitest.Must(t, "trace", "convert", "plain.csv"); !strings.Contains(out, ",status\n") {
		t.Errorf("a column without names: %q", out)
	}
	if out := clitest.Must(t, "trace", "stats", "plain.csv") +
		clitest.Must(t, "trace", "stats", "plain.csv", "--json"); strings.Contains(out, "names  ") ||
		strings.Contains(out, `"names"`) || strings.Contains(out, `"groups"`) {
		t.Errorf("no names, and yet\n%s", out)
	}
}

func TestStatsOfTheRealTraceEqualItsPublishedTable(t *testing.T) {
	trace := filepath.Join("..", "..", "..", "..", "..", "shared", "traces", "philly", "philly_jobs.csv.gz")
	if _, err := os.Stat(trace); err != nil {
		t.Skip("real Philly trace not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	var d look.Stats
	clitest.Strict(t, clitest.Must(t, "trace", "stats", trace, "--json"), &d)
	if d.Trace.Jobs != 71920 || d.Duration.P50 != 1079 || d.Duration.P90 != 10289 || d.Duration.P99 != 247622 ||
		d.Duration.Max != 4628226 || len(d.VCs) != 13 {
		t.Errorf("got %d jobs, %+v, %d VCs", d.Trace.Jobs, d.Duration, len(d.VCs))
	}
}

func TestConvertWritesLogsAndSaysWhatIsLost(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "log.swf", log)
	again := clitest.Must(t, "trace", "convert", "log.swf", "--to", "swf")
	want := "; Version: 2.2\n; MaxProcs: 64\n1 0 -1 100 4 -1 -1 4 200 2048 1 3 1 -1 -1 -1 -1 -1\n3 6 -1 50 8 -1 -1 8 -1 -1 0 4 1 -1 -1 -1 -1 -1\n"
	if again != want {
		t.Errorf("got %q, want %q", again, want)
	}
	clitest.Write(t, "again.swf", again)
	if twice := clitest.Must(t, "trace", "convert", "again.swf", "--to", "swf"); twice != again {
		t.Errorf("a second time %q", twice)
	}
	clitest.Write(t, "dag.csv", "task_name,instance_num,job_name,status,start_time,end_time,plan_cpu,plan_mem\n"+
		"M1,2,j1,Terminated,5,9,100,1\nR2_1,1,j1,Terminated,5,19,100,1\nM1,2,j2,Failed,6,9,100,1\n")
	code, out, said := clitest.Run(t, "trace", "convert", "dag.csv")
	if code != cli.ExitDone || !strings.HasSuffix(out, "\n5,14,3,j1,,,,3,,,,,,,,,completed\n") ||
		said != "gymctl: note: csv has no place for task graphs (1 job)\n" {
		t.Errorf("exit code %d, printed %q, said %q", code, out, said)
	}
	code, out, said = clitest.Run(t, "trace", "convert", "dag.csv", "--to", "swf")
	if code != cli.ExitDone || !strings.HasSuffix(out, "\n1 5 -1 14 3 -1 -1 3 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n") ||
		said != "gymctl: note: swf has no place for task graphs (1 job), cores (1 job)\n" {
		t.Errorf("exit code %d, printed %q, said %q", code, out, said)
	}
	clitest.Write(t, "share.csv", "submit_time,duration,num_gpu\n0,5,0.5\n")
	code, _, said = clitest.Run(t, "trace", "convert", "share.csv", "--to", "swf", "-o", "share.swf")
	if code != cli.ExitMistake || !strings.Contains(said, "swf: job 0 (\"0\"): 1 GPUs at 500 thousandths") {
		t.Errorf("exit code %d, said %q", code, said)
	}
	if _, err := os.Stat("share.swf"); err == nil {
		t.Error("half a log is left")
	}
}

func TestTracesWithoutRunTimesShowWhatTheyHave(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "steps.trace", "ResNet-18 (batch size 64)\tmain.py --data %s\t--num_steps\t1\t1000\t5\t2\n")
	out := clitest.Must(t, "trace", "stats", "steps.trace")
	for _, line := range []string{"steps.trace (gavel): 1 job, run times not in the file",
		"run time    not in the file; --profiles", "carry       iterations (1)", "ResNet-18 (batch size 64)"} {
		if !strings.Contains(out, line) {
			t.Errorf("%q is missing in\n%s", line, out)
		}
	}
	code, out, said := clitest.Run(t, "trace", "convert", "steps.trace")
	if code != cli.ExitDone || !strings.HasSuffix(out,
		"\n5,0,2,0,,,,,,,ResNet-18 (batch size 64),1000,,,,,,main.py --data %s\n") ||
		!strings.Contains(said, "note: run times are 0") {
		t.Errorf("exit code %d, printed %q, said %q", code, out, said)
	}
	clitest.Write(t, "table.json", `{"v100": {"('ResNet-18 (batch size 64)', 2)": {"null": 16.0}}}`)
	out = clitest.Must(t, "trace", "stats", "steps.trace", "--profiles", "table.json")
	if !strings.Contains(out, "run time    p50 62.5 s") || !strings.Contains(out, "profiles table.json on v100") {
		t.Errorf("with a table:\n%s", out)
	}
	code, _, said = clitest.Run(t, "sim", "--trace", "steps.trace", "--cluster", "4x4")
	if code != cli.ExitMistake || !strings.Contains(said, "want --profiles") {
		t.Errorf("exit code %d, said %q", code, said)
	}
}

func TestMadeUpLogsAreValid(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, profile := range []string{"hpc", "lublin", "philly"} {
		clitest.Must(t, "trace", "synth", "--profile", profile, "--jobs", "200", "--to", "swf", "-o", "a.swf.gz")
		clitest.Must(t, "trace", "synth", "--profile", profile, "--jobs", "200", "-o", "a.csv")
		var log, table look.Stats
		clitest.Strict(t, clitest.Must(t, "trace", "stats", "a.swf.gz", "--json"), &log)
		clitest.Strict(t, clitest.Must(t, "trace", "stats", "a.csv", "--json"), &table)
		if log.Trace.Jobs != 200 || log.Trace.Dropped != 0 || log.GPUHours != table.GPUHours || log.SpanS != table.SpanS ||
			log.NoEstimate != table.NoEstimate {
			t.Errorf("%s: %+v, want as %+v", profile, log, table)
		}
		if procs := log.Trace.Procs; procs != map[string]int{"hpc": 128, "lublin": 128}[profile] {
			t.Errorf("%s: %d processors", profile, procs)
		}
	}
	if code, _, said := clitest.Run(t, "trace", "synth", "--profile", "mars"); code != cli.ExitMistake ||
		!strings.Contains(said, "profile: got \"mars\", want one of dally,") {
		t.Errorf("exit code %d, said %q", code, said)
	}
	if code, _, said := clitest.Run(t, "trace", "synth", "--set", "procs=64"); code != cli.ExitMistake ||
		!strings.Contains(said, "procs: got 64") {
		t.Errorf("exit code %d, said %q", code, said)
	}
}

func TestFormats(t *testing.T) {
	out := clitest.Must(t, "trace", "formats")
	var d struct {
		Formats []workload.Format `json:"formats"`
	}
	clitest.Strict(t, clitest.Must(t, "trace", "formats", "--json"), &d)
	if len(d.Formats) != len(workload.Formats()) {
		t.Errorf("%d formats, want %d", len(d.Formats), len(workload.Formats()))
	}
	for _, f := range d.Formats {
		if !strings.Contains(out, f.Name+": "+f.What) {
			t.Errorf("%s is missing in\n%s", f.Name, out)
		}
	}
}

func TestSizesAreGatheredByPowersOfTwo(t *testing.T) {
	got := look.Buckets([]look.Size{{GPUs: 0, Jobs: 1}, {GPUs: .25, Jobs: 2}, {GPUs: .5, Jobs: 3}, {GPUs: 1, Jobs: 4},
		{GPUs: 3, Jobs: 5}, {GPUs: 4, Jobs: 6},
		{GPUs: 256, Jobs: 7}, {GPUs: 5000, Jobs: 8}})
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	want := []look.Bucket{{"0", 1, 0}, {"below 1", 5, 0}, {"1", 4, 0}, {"3-4", 11, 0}, {"129-256", 7, 0},
		{"257 and more", 8, 0}}
	if len(got) != len(want) {
		t.Fatalf("got %+v (%s), want %+v", got, b, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}
}
