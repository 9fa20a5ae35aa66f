package known_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"clustergym/internal/hostlist"
	"clustergym/ops/incumbent/known"
	"clustergym/traces"
	"clustergym/traces/sacct"
)

// read returns the jobs of an accounting, those that had not ended included.
func read(t *testing.T, text []byte) map[string]traces.Job {
	t.Helper()
	r, err := sacct.NewReader(bytes.NewReader(text), "known", sacct.Options{Unended: true})
	if err != nil {
		t.Fatal(err)
	}
	jobs := map[string]traces.Job{}
	for {
		var j traces.Job
		if err := r.Next(&j); errors.Is(err, io.EOF) {
			return jobs
		} else if err != nil {
			t.Fatal(err)
		}
		jobs[j.ID] = j
	}
}

// What is read from an accounting is what has happened.
func TestAccountingsSayWhatHappened(t *testing.T) {
	for _, kind := range known.Kinds() {
		text, spec, truth := known.Make(kind, 1)
		if again, _, _ := known.Make(kind, 1); !bytes.Equal(again, text) {
			t.Errorf("%s: the same seed gives another text", kind)
		}
		if other, _, _ := known.Make(kind, 2); bytes.Equal(other, text) {
			t.Errorf("%s: another seed gives the same text", kind)
		}
		names, got, count := spec.NodeNames(), read(t, text), map[string]int{}
		wait, ended := time.Duration(0), time.Duration(0)
		for i := range truth.Jobs {
			want := &truth.Jobs[i]
			j, ok := got[want.ID]
			if !ok || j.Submit != want.Submit || j.GPUs != want.GPUs || j.Nodes != want.Nodes || j.User != want.User ||
				j.Group != want.Group || j.VC != want.VC || j.Name != want.Name || len(j.GPUTypes) != len(want.GPUTypes) {
				t.Fatalf("%s: job %s is read as %+v, want %+v", kind, want.ID, j, *want)
			}
			count["arrays"] += strings.Count(want.ID, "_")
			count["no GPUs"] += max(0, 1-want.GPUs)
			count["typed"] += len(want.GPUTypes)
			if j.Estimate == 0 {
				count["no limit"]++
			} else if j.Estimate != want.Estimate {
				t.Fatalf("%s: job %s has limit %v, want %v", kind, want.ID, j.Estimate, want.Estimate)
			}
			switch {
			case truth.Ended(want):
				if j.Open != traces.Ended || j.Work != want.Work {
					t.Fatalf("%s: job %s works %v (%v), want %v", kind, want.ID, j.Work, j.Open, want.Work)
				}
				if want.GPUs > 0 {
					wait, ended = wait+j.Waited, ended+1
				}
			case truth.Started(want):
				count["running"]++
			default:
				if count["pending"]++; j.Open != traces.StillWaiting {
					t.Fatalf("%s: job %s is %v", kind, want.ID, j.Open)
				}
				continue
			}
			if at := truth.Full.Starts[want.ID]; !j.Started || j.Submit+j.Waited != at {
				t.Fatalf("%s: job %s starts at %v (%v), want %v", kind, want.ID, j.Submit+j.Waited, j.Started, at)
			}
			hosts, err := hostlist.Expand(j.Hosts)
			if err != nil || len(hosts) != want.Nodes && j.Open != traces.StillWaiting {
				t.Fatalf("%s: job %s has hosts %q, want %d", kind, want.ID, j.Hosts, want.Nodes)
			}
			for _, h := range hosts {
				if !strings.Contains(strings.Join(names, " "), h) {
					t.Fatalf("%s: there is no host %s", kind, h)
				}
			}
		}
		count["requeued"] = strings.Count(string(text), "|REQUEUED|")
		count["timeout"] = strings.Count(string(text), "|TIMEOUT|")
		count["reserved"] = strings.Count(string(text), "|reserved|")
		t.Log(kind, len(got), count, truth.Load(), truth.MeanWait())
		for what, least := range map[string]int{"arrays": 500, "no GPUs": 100, "typed": 1000, "no limit": 100, "running": 5,
			"requeued": 10, "timeout": 10} {
			if count[what] < least {
				t.Errorf("%s: %s come up %d times, want %d", kind, what, count[what], least)
			}
		}
		if len(got) != 5000 || (kind == "reserved") != (count["reserved"] > 100) {
			t.Errorf("%s: %d jobs, %d in the reserved partition", kind, len(got), count["reserved"])
		}
		if mean := wait / ended; mean != truth.MeanWait() {
			t.Errorf("%s: the recorded mean wait is %v, want %v", kind, mean, truth.MeanWait())
		}
	}
}

// There is a real queue, and it does not grow without end.
func TestQueuesAreReal(t *testing.T) {
	for _, kind := range known.Kinds() {
		for seed := uint64(1); seed <= 6; seed++ {
			_, _, truth := known.Make(kind, seed)
			sjf, err := truth.Play("sjf+strict+easy", "history")
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, seed %d: load %.2f for %v, mean wait %v, to the end %v; sjf %v", kind, seed, truth.Load(), truth.Cut,
				truth.MeanWait(), truth.Full.MeanWait(nil), sjf.MeanWait(nil))
			if w := truth.MeanWait(); w < time.Hour || w > 30*time.Hour {
				t.Errorf("%s, seed %d: the mean wait is %v", kind, seed, w)
			}
		}
	}
}
