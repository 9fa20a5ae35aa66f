package kube

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/traces"
)

func TestQuantitiesAreRead(t *testing.T) {
	for q, want := range map[Quantity]int64{"8": 8000, "500m": 500, "1.5": 1500, "2k": 2e6, "1e3": 1e6,
		"64Gi": 64 << 30 * 1000, "0": 0, "1u": 1, "0.0001": 1} {
		if got, ok := q.Milli(); !ok || got != want {
			t.Errorf("%q: %d, %v, want %d", q, got, ok, want)
		}
	}
	for _, q := range []Quantity{"", "x", "1e400", "-1", "1Zi", "99999999999999999999", "1 2", "Gi", "."} {
		if got, ok := q.Milli(); ok {
			t.Errorf("%q: %d, want none", q, got)
		}
	}
	if n, ok := Quantity("1.2").Value(); !ok || n != 2 {
		t.Errorf("%d, %v, want 2: Kubernetes rounds up", n, ok)
	}
}

const jobText = `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train-7", "namespace": "ml", "uid": "11111111-a", "resourceVersion": "%d",
	"creationTimestamp": "2026-01-05T08:00:00Z", "labels": {"user": "ada"}, "ownerReferences": [{"kind": "CronJob", "name": "train", "uid": "9", "controller": true}]},
	"spec": {"parallelism": 2, "completions": 2, "activeDeadlineSeconds": 3600, "template": {"spec": {"nodeSelector": {"nvidia.com/gpu.product": "A100"},
	"initContainers": [{"resources": {"requests": {"cpu": "8"}}}], "containers": [{"resources": {"limits": {"nvidia.com/gpu": "4", "cpu": 2, "memory": "8Gi"}}}]}}},
	"status": %s}`

const podText = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "train-7-%d", "namespace": "ml", "uid": "2%d", "resourceVersion": "6", "creationTimestamp": "2026-01-05T08:00:01Z",
	"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "train-7", "uid": "11111111-a", "controller": true}]},
	"spec": {"nodeName": "g0"}, "status": {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-05T08:1%d:00Z"}]}}`

func read(t *testing.T, text string) (*Reader, []traces.Job) {
	t.Helper()
	r, err := NewReader(strings.NewReader(text), "file", Default())
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := traces.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return r, jobs
}

// A watch shows the Job three times, the last state late; its pods start 10 and 11 minutes after it came, and it ends
// after 40.
func TestAWatchBecomesATrace(t *testing.T) {
	done := `{"startTime": "2026-01-05T08:00:00Z", "completionTime": "2026-01-05T08:40:00Z", "conditions": [{"type": "Complete", "status": "True"}]}`
	text := fmt.Sprintf(jobText, 5, "{}") + "\n" + fmt.Sprintf(podText, 0, 0, 1) + fmt.Sprintf(podText, 1, 1, 0) +
		`{"type": "MODIFIED", "object": ` + fmt.Sprintf(jobText, 9, done) + `}` + fmt.Sprintf(jobText, 7, `{"active": 2}`) +
		`{"type": "BOOKMARK", "object": {"kind": "Job"}}`
	r, jobs := read(t, text)
	want := traces.Job{ID: "job/ml/train-7@11111111", VC: "ml", User: "ada", Name: "train", GPUs: 8, GPUMilli: 1000,
		GPUTypes: []string{"A100"}, CPUMilli: 16000, MemBytes: 16 << 30,
		Work: 30 * time.Minute, Estimate: time.Hour, Status: traces.Completed}
	if len(jobs) != 1 || fmt.Sprint(jobs[0]) != fmt.Sprint(want) || len(r.Skipped()) != 0 {
		t.Errorf("%+v, %v, want %+v", jobs, r.Skipped(), want)
	}
}

func TestListsHaveJobsWorkloadsAndPods(t *testing.T) {
	item := func(kind, name, at, spec, status, more string) string {
		return fmt.Sprintf(
			`{%s "metadata": {"name": %q, "namespace": "ml", "uid": "uid-%s", "creationTimestamp": "2026-01-05T%sZ" %s}, "spec": %s, "status": %s}`, kind, name, name, at, more, spec, status)
	}
	gpus := `"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}]`
	pod := func(name, group, end string) string {
		return item(`"kind": "Pod",`, name, "08:00:00", `{"nodeName": "g1", `+gpus+`}`,
			`{"phase": "Succeeded", "startTime": "2026-01-05T08:01:00Z", "containerStatuses": [{"state": {"terminated": {"finishedAt": "2026-01-05T`+end+`Z"}}}]}`,
			`, "labels": {"scheduling.x-k8s.io/pod-group": "`+group+`"}`)
	}
	text := `{"kind": "List", "items": [` + strings.Join([]string{
		pod("a", "pair", "08:05:00"), pod("b", "pair", "08:09:00"),
		item(`"kind": "Pod",`, "waits", "08:02:00", `{`+gpus+`}`, `{"phase": "Pending"}`, ""),
		item(`"kind": "Job",`, "cores", "08:03:00", `{"template": {"spec": {"containers": [{}]}}}`, `{}`, ""),
		item(`"kind": "Workload",`, "w", "08:04:00",
			`{"queueName": "q", "priority": 5, "maximumExecutionTimeSeconds": 60, "podSets": [{"count": 3, "template": {"spec": {`+gpus+`}}}]}`,
			`{"conditions": [{"type": "Admitted", "status": "True", "lastTransitionTime": "2026-01-05T08:05:00Z"}, {"type": "Finished", "status": "True", "reason": "Failed", "lastTransitionTime": "2026-01-05T08:06:00Z"}]}`,
			`, "ownerReferences": [{"kind": "PyTorchJob", "name": "torch", "uid": "uid-torch", "controller": true}]`),
		item(`"kind": "ConfigMap",`, "c", "08:03:00", `{}`, `{}`, ""),
	}, ",") + `]}` + `{"kind": "JobList", "items": [` +
		item("", "bare", "08:06:00", `{"template": {"spec": {`+gpus+`}}}`, `{"startTime": "2026-01-05T08:07:00Z"}`, "") + `]}`
	r, jobs := read(t, text)
	var got []string
	for _, j := range jobs {
		got = append(got,
			fmt.Sprint(j.ID, " ", j.Name, " ", j.GPUs, " ", j.Submit, " ", j.Work, " ", j.Estimate, " ", j.Priority, " ",
				j.Group, " ", j.Status))
	}
	want := []string{"pods/ml/pair pair 2 0s 8m0s 0s 0  completed",
		"workload/ml/w@uid-w torch 3 4m0s 1m0s 1m0s 5 q failed"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if s := fmt.Sprint(r.Skipped()); s != fmt.Sprintf("[{%s 1} {%s 1} {%s 1}]", NeverStarted, NoGPUs, NotEnded) {
		t.Errorf("left out: %s", s)
	}
}

func TestWhatIsNoRecordingIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "no Jobs, pods or Workloads among 0 objects",
		`{"kind": "ConfigMap"}`:      "no Jobs, pods or Workloads among 1 objects",
		`{"kind": "Job"`:             "document 1",
		`[1]`:                        "document 1",
		`{"kind": "Job"} {"a": 1}`:   "no uid",
		`{"a": 1}`:                   "it has no kind",
		"apiVersion: v1\nkind: List": "document 1",
		`{"kind": "Job", "metadata": {"uid": "a", "creationTimestamp": "yesterday"}}`: "document 1",
	} {
		_, err := NewReader(strings.NewReader(text), "jobs.json", Default())
		var row *traces.RowError
		if !errors.As(err, &row) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "jobs.json") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzNewReader(f *testing.F) {
	f.Add(fmt.Sprintf(jobText, 5, "{}"))
	f.Add(`{"kind": "List", "items": [` + fmt.Sprintf(podText, 0, 0, 1) + `]}`)
	f.Add(`{"kind": "Workload", "metadata": {"uid": "a", "creationTimestamp": "2026-01-05T08:00:00Z"}, "spec": {"podSets": [{"count": -9223372036854775808, "template": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1e18"}}}]}}}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := NewReader(strings.NewReader(text), "f", Default())
		if err != nil {
			return
		}
		jobs, err := traces.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		for i := range jobs {
			if jobs[i].GPUs < 1 || jobs[i].GPUs > traces.MaxGPUs || jobs[i].CheckTimes() != nil || jobs[i].CPUMilli < 0 ||
				jobs[i].MemBytes < 0 {
				t.Fatalf("%+v", jobs[i])
			}
		}
	})
}
