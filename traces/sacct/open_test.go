package sacct

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/traces"
)

// open reads text with the jobs that had not ended.
func open(t *testing.T, text string) ([]traces.Job, *Reader) {
	t.Helper()
	d, err := NewReader(strings.NewReader(text), "t.txt", Options{Unended: true})
	if err != nil {
		t.Fatal(err)
	}
	return d.Jobs(), d
}

// told says of each job what these tests look at.
func told(jobs []traces.Job) string {
	var all []string
	for _, j := range jobs {
		all = append(all, fmt.Sprintf("%s %s %v+%v %dg/%dn %s limit %v eligible %v", j.ID, j.Open, j.Waited, j.Work, j.GPUs,
			j.Nodes, j.Hosts, j.Estimate, j.Eligible))
	}
	return strings.Join(all, "\n")
}

// The file has what a cluster has while sacct is asked: jobs that run, wait, are suspended and were requeued, arrays
// and a heterogeneous job. Text and JSON give the same.
func TestJobsThatHadNotEnded(t *testing.T) {
	const want = `200 ended 5m0s+1h0m0s 8g/1n g1 limit 2h0m0s eligible 0s
201 still running 10m0s+2h50m0s 16g/2n g[2-3] limit 24h0m0s eligible 0s
203_1 still running 20m0s+1h20m0s 1g/1n g4 limit 4h0m0s eligible 0s
203_2 still waiting 0s+0s 1g/1n  limit 4h0m0s eligible 0s
203_5 still waiting 0s+0s 1g/1n  limit 4h0m0s eligible 0s
203_6 still waiting 0s+0s 1g/1n  limit 4h0m0s eligible 0s
204 still waiting 0s+0s 32g/4n  limit 48h0m0s eligible 1h0m0s
202 still running 0s+30m0s 4g/1n g4 limit 0s eligible 0s
205 still running 0s+1h0m0s 12g/3n g5,g[6-7] limit 1h0m0s eligible 0s
206 still waiting 10m0s+40m0s 8g/1n  limit 8h0m0s eligible 0s
207 still waiting 30m0s+20m0s 8g/1n g1 limit 8h0m0s eligible 0s`
	for _, file := range []string{"open.txt", "open.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", file)) //nolint:gosec // of these tests
		if err != nil {
			t.Fatal(err)
		}
		jobs, d := open(t, string(text))
		if got := told(jobs); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", file, got, want)
		}
		if d.Until() != 4*time.Hour {
			t.Errorf("%s mentions %v last", file, d.Until())
		}
		if got := fmt.Sprint(d.Skipped()); got != "[{never started: Start is not known 1} {no run time: Elapsed is 0 1}]" {
			t.Errorf("%s: left out %s", file, got)
		}
		closed, _, err := read(t, string(text))
		if err != nil || what(closed) != "200 3600 s 8, 207 1200 s 8" || closed[1].Open != traces.Ended {
			t.Errorf("%s without them: %s, %v", file, what(closed), err)
		}
	}
}

func TestARunningJobWithoutElapsedRanUntilTheLatestTimeOfTheFile(t *testing.T) {
	jobs, d := open(t, without(joinedHead+row("1", "a", "10:00", "10:10", "", "", "RUNNING", 2)+
		row("2", "a", "10:00", "10:00", "11:00", "", "COMPLETED", 1), "ElapsedRaw"))
	if len(jobs) != 2 || jobs[0].Work != 50*time.Minute || jobs[0].Open != traces.StillRunning || d.Until() != time.Hour {
		t.Errorf("%s, until %v", told(jobs), d.Until())
	}
}

func TestRowsOfWaitingTasks(t *testing.T) {
	for list, want := range map[string]string{
		"[5-9%2]": "5 6 7 8 9", "[1,3]": "1 3", "[0-6:3]": "0 3 6", "[0x2a%2]": "1 3 5", "[0xA]": "1 3",
		"[1,3,5,...%2]": "1 3 5 +", "[1-3,...]": "1 2 3 +", "[x]": "!", "[3-1]": "!", "[0-2147483647]": "!", "[0x]": "!",
	} {
		d, err := NewReader(strings.NewReader(joinedHead+row("7_"+list, "a", "10:00", "", "", "0", "PENDING", 2)), "t.txt",
			Options{Unended: true})
		if err != nil {
			if want != "!" || !strings.Contains(err.Error(), "t.txt:2: JobID: ") {
				t.Errorf("%s: %v", list, err)
			}
			continue
		}
		var got []string
		for _, j := range d.Jobs() {
			got = append(got, strings.TrimPrefix(j.ID, "7_"))
			if j.Open != traces.StillWaiting || j.GPUs != 2 {
				t.Errorf("%s: %+v", list, j)
			}
		}
		for _, s := range d.Skipped() {
			if s.Reason == Shortened {
				got = append(got, "+")
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", list, got, want)
		}
	}
}

// A dump that was written while jobs waited and ran, and one that was written later, are those of the later one.
func TestLaterDumpsOfJobsThatHadNotEnded(t *testing.T) {
	array := row("7_[1-3]", "a", "10:00", "", "", "0", "PENDING", 2)
	for name, c := range map[string]struct{ dumps, want string }{
		"pending, then running": {row("7", "a", "10:00", "", "", "0", "PENDING", 2) +
			row("7", "a", "10:00", "10:10", "", "60", "RUNNING", 2), "7 still running 60"},
		"running twice": {row("7", "a", "10:00", "10:10", "", "60", "RUNNING", 2) +
			row("7", "a", "10:00", "10:10", "", "90", "RUNNING", 2), "7 still running 90"},
		"an array of which one ran": {array + row("7_2", "a", "10:00", "10:10", "10:20", "600", "COMPLETED", 2) +
			row("7_[1,3]", "a", "10:00", "", "", "0", "PENDING", 2),
			"7_1 still waiting 0, 7_2 ended 600, 7_3 still waiting 0"},
		"an array that was cancelled": {array + row("7_[1-3]", "a", "10:00", "", "11:00", "0", "CANCELLED by 5", 2), ""},
		"cancelled before it ran":     {row("7", "a", "10:00", "None", "10:20", "0", "CANCELLED by 0", 2), ""},
		"requeued, and waits again": {row("8", "a", "10:00", "10:00", "11:00", "3600", "REQUEUED", 2) +
			row("8", "a", "11:00", "", "", "0", "PENDING", 2), "8 still waiting 3600"},
		"requeued, and runs again": {row("8", "a", "10:00", "10:00", "11:00", "3600", "REQUEUED", 2) +
			row("8", "a", "11:00", "11:10", "", "60", "RUNNING", 2), "8 still running 3660"},
		"requeued, and ended": {row("8", "a", "10:00", "10:00", "11:00", "3600", "REQUEUED", 2) +
			row("8", "a", "11:00", "11:10", "11:20", "600", "COMPLETED", 2), "8 ended 4200"},
		"preempted for good": {row("8", "a", "10:00", "10:00", "11:00", "3600", "PREEMPTED", 2), "8 ended 3600"},
	} {
		jobs, _ := open(t, joinedHead+c.dumps)
		var got []string
		for _, j := range jobs {
			got = append(got, fmt.Sprintf("%s %s %d", j.ID, j.Open, j.Work/time.Second))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %s, want %s", name, strings.Join(got, ", "), c.want)
		}
	}
}

func TestNodesOfComponents(t *testing.T) {
	head := "JobID|Submit|Start|End|ElapsedRaw|State|NNodes|AllocTRES|NodeList\n"
	part := func(id, tres, nodes, hosts string) string {
		return id + "|2024-03-01T10:00:00|2024-03-01T10:00:00|2024-03-01T11:00:00|3600|COMPLETED|" + nodes + "|" + tres + "|" +
			hosts + "\n"
	}
	for name, c := range map[string]struct{ text, want string }{
		"equal":          {part("5+0", "gres/gpu=8", "1", "g1") + part("5+1", "gres/gpu=16", "2", "g[2-3]"), "3 g1,g[2-3]"},
		"CPUs alone too": {part("5+0", "cpu=4", "1", "c1") + part("5+1", "gres/gpu=16", "2", "g[2-3]"), "2 c1,g[2-3]"},
		"different": {part("5+0", "gres/gpu=4", "1", "g1") + part("5+1", "gres/gpu=16", "2", "g[2-3]"),
			"0 g1,g[2-3]"},
		"node of TRES":  {part("5", "gres/gpu=4,node=2", "", "g[2-3]"), "2 g[2-3]"},
		"none assigned": {part("5", "gres/gpu=4", "1", "None assigned"), "1 "},
	} {
		jobs, _, err := read(t, head+c.text)
		if err != nil || len(jobs) != 1 || fmt.Sprint(jobs[0].Nodes, " ", jobs[0].Hosts) != c.want {
			t.Errorf("%s: %s, %v", name, told(jobs), err)
		}
	}
}
