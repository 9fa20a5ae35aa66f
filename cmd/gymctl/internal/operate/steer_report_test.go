package operate_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/ops/steer"
)

// writeSteerLog writes the log of a cluster of n nodes with eight GPUs, on which 40 jobs of eight GPUs run in order of
// arrival.
func writeSteerLog(t *testing.T, file, policy string, nodes int) {
	t.Helper()
	zero := time.Date(2026, time.January, 5, 8, 0, 0, 0, time.UTC)
	lines := make([]steer.Line, 200)
	for i := range lines {
		at := zero.Add(time.Duration(i) * time.Minute)
		lines[i] = steer.Line{At: at, Observed: at, Cluster: "yard", Policy: policy, Mode: steer.Shadow, Digest: "x"}
	}
	for i := range nodes {
		lines[0].Nodes = append(lines[0].Nodes, steer.NodeLine{Name: fmt.Sprintf("g%d", i), GPUs: 8})
	}
	lines[0].Begun = &steer.Begun{Policy: policy, Estimates: "trace", Limit: 3600, Every: 60, History: "gone.txt"}
	free := make([]int, nodes) // when each node is, in minutes
	for i := range 40 {
		node, come, work := i%nodes, 3*i+1, 4+i%5
		start := max(come, free[node])
		free[node] = start + work
		j := steer.JobLine{ID: fmt.Sprint(i), User: "u", GPUs: 8, Limit: 900,
			Submit: zero.Add(time.Duration(come)*time.Minute - 30*time.Second)}
		put := func(minute int, list func(x *steer.Line) *[]steer.JobLine) {
			if minute < len(lines) {
				to := list(&lines[minute])
				*to = append(*to, j)
			}
		}
		put(come, func(x *steer.Line) *[]steer.JobLine { return &x.Arrived })
		j.Start, j.Nodes = zero.Add(time.Duration(start)*time.Minute), []string{fmt.Sprintf("g%d", node)}
		put(start+1, func(x *steer.Line) *[]steer.JobLine { return &x.Started })
		j.End = zero.Add(time.Duration(start+work) * time.Minute)
		put(start+work+1, func(x *steer.Line) *[]steer.JobLine { return &x.Ended })
	}
	var b strings.Builder
	for i := range lines {
		x, err := json.Marshal(&lines[i])
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(x, '\n'))
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The policy of a log is asked again and replayed, or another one: a rule, a checkpoint. What cannot be opened is said.
func TestSteerReport(t *testing.T) {
	clitest.OneGoroutine(t)
	clitest.InYard(t)
	clitest.Must(t,
		append(strings.Fields("train --trace jobs.csv --cluster 2x8 --set env.window=16 --set env.warm=4 --set env.images=true --set train.group=2 --set train.imitate_steps=600 --set eval.windows=2 --run-dir run"), clitest.Brief...)...)
	writeSteerLog(t, "log", "sjf+skip", 2)
	out := clitest.Must(t, strings.Fields("steer report log --html page.html")...)
	for _, want := range []string{"Agreement at real starts", "model of the cluster", "policy", "is not to be believed",
		"gone.txt, which is not there any more"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	for _, line := range strings.Split(out, "\n") {
		if strings.HasPrefix(line, "----") && len([]rune(line)) > 120 {
			t.Errorf("a table is %d columns wide", len([]rune(line)))
		}
	}
	if page := clitest.Read(t, "page.html"); !strings.Contains(page, "Cumulative waits") ||
		!strings.Contains(page, "default-src 'none'") {
		t.Error("the page lacks its charts, or asks for something outside")
	}
	var doc struct {
		Policy    string
		Incumbent string
		Replays   []struct{ Role, Name string }
	}
	if err := json.Unmarshal([]byte(clitest.Must(t, strings.Fields("steer report log --policy run --json")...)),
		&doc); err != nil || doc.Policy == "" || doc.Incumbent == "" || len(doc.Replays) < 6 {
		t.Errorf("%+v, %v", doc, err)
	}
	writeSteerLog(t, "other", "runs/gone", 2)
	if out := clitest.Must(t, strings.Fields("steer report other")...); !strings.Contains(out,
		"no policy is asked or replayed") {
		t.Error(out)
	}
	writeSteerLog(t, "three", "sjf+skip", 3)
	for _, x := range []struct{ args, want string }{
		{"log --policy srtf", "stops running jobs"},
		{"three --policy run", "2 nodes of 8 GPUs there, 3 here"},
		{"log --policy sjf --policy-onnx x.onnx", "does not go with"},
		{"log --history gone.txt", "gone.txt"},
		{"jobs.csv", "is no log of gymctl steer"},
		{"log --asks 0", "--asks"},
		{"log log", "twice"},
		{"nowhere", "nowhere"},
		{"", "one log"},
	} {
		clitest.Wrong(t, strings.Fields("steer report "+x.args), x.want)
	}
}
