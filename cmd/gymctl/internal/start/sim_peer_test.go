package start_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

// Two jobs of two GPUs, 25,000 iterations of 0.1 s, and a network without cost: blocks of 1000 s and 20,000
// iterations, so two blocks each.
const peerJobs = "job,arrival,gpus,model,iterations,time_per_iteration\n7,0,2,VGG,25000,0.1\n9,100,2,VGG,25000,0.1\n"

func TestSimOnThePeersMachine(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "jobs.csv", peerJobs)
	out := clitest.Must(t, "sim", "--peer", "dally-waiting-only", "--trace", "jobs.csv", "--cluster", "dally:1x1",
		"--policy", "dally", "--net", "one",
		"--json", "--jobs-out", "out.csv", "--events", "events.jsonl")
	var d struct {
		Policy  string
		Metrics struct {
			Finished int
			Makespan float64                `json:"makespan_s"`
			JCT      struct{ Mean float64 } `json:"jct_s"`
		}
		Peer struct {
			Name, Net string
			Blocks    int
			MeanJCT   float64 `json:"mean_jct_s"`
			Grants    struct{ Slot int }
		}
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	if d.Policy != "dally" || d.Metrics.Finished != 2 || d.Metrics.Makespan != 2100 || d.Metrics.JCT.Mean != 2000 ||
		d.Peer.MeanJCT != 2000 ||
		d.Peer.Blocks != 4 || d.Peer.Grants.Slot != 2 || d.Peer.Name != "dally-waiting-only" {
		t.Errorf("got %s", out)
	}
	rows, err := os.ReadFile("out.csv")
	if err != nil {
		t.Fatal(err)
	}
	const want = "job_id,user,vc,num_gpu,submit_time,first_start,finish,duration,wait,jct,slowdown,preemptions,migrations,state," +
		"queue_delay,gpu_time,comp_time,g_one,g_slot,g_machine,g_rack,g_cross,g_while_running\n" +
		"7,,,2,0,0,2000,1250,0,2000,1,0,0,finished,0,2000,2000,0,1,0,0,0,0\n" +
		"9,,,2,100,100,2100,1250,0,2000,1,0,0,finished,0,2000,2000,0,1,0,0,0,0\n"
	if string(rows) != want {
		t.Errorf("got\n%s", rows)
	}
	events, err := os.ReadFile("events.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	// The machine's only two slots; its hash map visits the second one first.
	if !strings.Contains(string(events), `{"t_s":0,"event":"start","job":"7","gpus":[4,5]}`) ||
		strings.Count(string(events), "\n") != 6 {
		t.Errorf("got\n%s", events)
	}
	clitest.Must(t, "sim", "--peer", "dally-waiting-only", "--jobs", "60", "--mix", "dally", "--cluster", "dally:1x1",
		"--policy", "dally,tiresias",
		"--set", "trace.synth.profile=dally", "--jobs-out", "two.csv")
	all := jobRows(t, "two.csv")
	states := map[string]int{}
	for i, r := range all {
		if want := []string{"dally", "tiresias"}[i/60]; r["policy"] != want || len(r) != 24 {
			t.Fatalf("row %d: %v", i, r)
		}
		states[r["state"]]++
	}
	if states["finished"] == 0 || states["refused"] == 0 || len(all) != 120 {
		t.Errorf("%d rows, states %v", len(all), states)
	}
	for _, policy := range []string{"tiresias", "gandiva"} {
		clitest.Must(t, "sim", "--peer", "dally-published", "--trace", "jobs.csv", "--cluster", "dally:2x2", "--policy",
			policy)
	}
}

func TestSimPeerMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "jobs.csv", peerJobs)
	for args, want := range map[string]string{
		"--peer dally": `--peer: got "dally", want one of dally-waiting-only, dally-published, lwf-pure, lwf-orig, lwf-pureall; did you mean dally-waiting-only?`,
		"--peer dally-published --policy sjf --cluster dally:1x1": `--policy: got "sjf", want one of dally, tiresias, gandiva, which the machine dally-published knows`,
		"--peer dally-published --policy dally --cluster pool:8":  "--cluster: got pool:8, want racks of equally many machines of eight GPUs for this machine, as dally:4x4",
		"--timers 5/10": "--timers goes with --peer",
		"--peer dally-published --policy dally --cluster dally:1x1 --comm ring":                         "--comm does not go with --peer",
		"--peer dally-published --policy dally --cluster dally:1x1 --net astra":                         "--net: got astra, want slow or one, or --factors, the path of a table that has it",
		"--peer dally-published --policy dally --cluster dally:1x1 --timers five":                       `--timers: got "five", want auto, or two numbers of leases, the rack's and the network's, as 5/10`,
		"--peer dally-published --policy dally --cluster dally:1x1 --factors none.csv":                  "--factors none.csv: there is no such file",
		"--peer dally-published --policy dally --cluster dally:1x1 --trace jobs.csv --factors jobs.csv": `jobs.csv:1: got "job,arrival,gpus,model,iterations,time_per_iteration", want a header with also net, shape, factor`,
	} {
		code, _, stderr := clitest.Run(t, append([]string{"sim"}, strings.Fields(args)...)...)
		if code != cli.ExitMistake || stderr != "gymctl: "+want+"\n" {
			t.Errorf("%s: %d, %s", args, code, stderr)
		}
	}
}

// gymctl peer NAME is what sim --peer NAME was, and still is.
func TestPeerIsAVerb(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "jobs.csv", peerJobs)
	const rest = " --cluster dally:2x2 --policy tiresias,dally --timers 5/10 --json"
	verb := clitest.Must(t, strings.Fields("peer dally-published jobs.csv"+rest)...)
	flag := clitest.Must(t, strings.Fields("sim jobs.csv --peer dally-published"+rest)...)
	if strip := regexp.MustCompile(`"[a-z_]*wall[a-z_]*":[^,}]*`); strip.ReplaceAllString(verb, "") !=
		strip.ReplaceAllString(flag, "") || !strings.Contains(verb, `"tiresias"`) {
		t.Errorf("peer prints\n%s\nand sim --peer\n%s", verb, flag)
	}
	for args, want := range map[string]string{
		"peer":                           "peer: want the NAME of a simulator, and one FILE or none; see gymctl peer --help",
		"peer dally-publishd":            `peer: simulator "dally-publishd" is unknown; did you mean dally-published?`,
		"peer lwf-pure --admission skip": "peer: flag --admission is unknown; see gymctl peer --help",
	} {
		if code, _, said := clitest.Run(t, strings.Fields(args)...); code != cli.ExitMistake || said != "gymctl: "+want+"\n" {
			t.Errorf("%s: exit code %d, said %q, want %q", args, code, said, want)
		}
	}
}
