package look_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
)

// ownJob is a Job that ran for half an hour on 4 GPUs, as kubectl prints it.
const ownJob = `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": "ml", "uid": "0a1b2c3d-4", "creationTimestamp": "2026-01-05T08:00:00Z", "labels": {"user": "ada"}},
"spec": {"activeDeadlineSeconds": 3600, "template": {"spec": {"containers": [{"resources": {"limits": {"%s": "4"}}}]}}},
"status": {"startTime": "2026-01-05T08:01:00Z", "completionTime": "2026-01-05T08:31:00Z", "conditions": [{"type": "Complete", "status": "True"}]}}`

// The cluster and a recording of it give the same trace, which every command reads.
func TestTheHistoryOfAKubernetes(t *testing.T) {
	t.Chdir(t.TempDir())
	denied := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case denied:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"message": "jobs.batch is forbidden"}`) //nolint:errcheck // a test's
		case r.Header.Get("Authorization") != "Bearer secret":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/apis/batch/v1/jobs":
			fmt.Fprintf(w, `{"kind": "JobList", "metadata": {}, "items": [%s]}`, fmt.Sprintf(ownJob, "nvidia.com/gpu")) //nolint:errcheck // a test's
		case r.URL.Path == "/api/v1/pods":
			fmt.Fprint(w, `{"kind": "PodList", "metadata": {}, "items": []}`) //nolint:errcheck // a test's
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer s.Close()
	clitest.Write(t, "config", fmt.Sprintf(`{current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}, {name: cloud, context: {cluster: a, user: cloud}}],
  clusters: [{name: a, cluster: {server: %q}}], users: [{name: a, user: {token: secret}}, {name: cloud, user: {exec: {command: cloud-auth}}}]}`, s.URL))
	t.Setenv("KUBECONFIG", "config")
	out := clitest.Must(t, "trace", "get", "kubernetes", "-o", "live.csv")
	if !strings.HasPrefix(out, "live.csv: 1 job\n  try       gymctl trace stats live.csv\n") {
		t.Errorf("printed %q", out)
	}
	clitest.Write(t, "jobs.json", fmt.Sprintf(ownJob, "nvidia.com/gpu"))
	clitest.Write(t, "more.json", strings.ReplaceAll(fmt.Sprintf(ownJob, "example.com/gpu"), "0a1b2c3d", "1a1b2c3d"))
	clitest.Must(t, "trace", "get", "kubernetes", "--from", "jobs.json", "-o", "recorded.csv")
	if live, recorded := clitest.Read(t, "live.csv"),
		clitest.Read(t, "recorded.csv"); live != recorded || !strings.Contains(live, "ada") ||
		!strings.Contains(live, "1800") {
		t.Errorf("of the cluster\n%s\nrecorded\n%s", live, recorded)
	}
	out = clitest.Must(t, "trace", "get", "kubernetes", "--from", "jobs.json", "--from", "more.json", "-o", "some.csv",
		"--json")
	if want := "no GPUs that count: it asks for example.com/gpu (4 in all); --gpu-resource example.com/gpu counts each as a GPU"; !strings.Contains(out, want) {
		t.Errorf("printed %s, want %q", out, want)
	}
	clitest.Must(t, "trace", "get", "kubernetes", "--from", "jobs.json", "--from", "more.json", "--gpu-resource",
		"nvidia.com/gpu", "--gpu-resource", "example.com/gpu", "-o", "all.csv")
	if out := clitest.Must(t, "trace", "stats", "all.csv"); !strings.Contains(out, "2 jobs") {
		t.Errorf("stats printed %s", out)
	}
	clitest.Write(t, "none.json", `{"kind": "ConfigMap"}`)
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"--context cloud", cli.ExitMistake, `gets its credentials from the program "cloud-auth"`},
		{"--context nobody", cli.ExitMistake, `no context "nobody"`},
		{"--kubeconfig nothing", cli.ExitMistake, "no such file"},
		{"--from none.json", cli.ExitMistake, "no Jobs, pods or Workloads among 1 objects"},
		{"--from nothing.json", cli.ExitMistake, "nothing.json"},
		{"--from jobs.json --namespace a", cli.ExitMistake, "--namespace does not go with --from"},
	} {
		code, _, said := clitest.Run(t,
			append([]string{"trace", "get", "kubernetes", "-o", "x.csv"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%s: exit code %d, said %q", c.args, code, said)
		}
	}
	denied = true
	if code, _, said := clitest.Run(t, "trace", "get", "kubernetes", "-o", "x.csv"); code != cli.ExitFailed ||
		!strings.Contains(said, "the cluster refuses this") || strings.Count(said, "\n") != 1 {
		t.Errorf("exit code %d, said %q", code, said)
	}
}

// Jobs whose earlier runs are unknown are counted: in the summary, in the document, and on standard error where the
// trace is printed.
func TestEvictedJobsAreCounted(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "evicted.json", `{"kind": "Workload", "metadata": {"name": "w", "namespace": "ml", "uid": "w", "creationTimestamp": "2026-01-05T08:00:00Z", "ownerReferences": [{"kind": "RayJob", "name": "x", "uid": "r"}]},
"spec": {"podSets": [{"count": 2, "template": {"spec": {"containers": [{"resources": {"requests": {"nvidia.com/gpu": "4"}}}]}}}]},
"status": {"requeueState": {"count": 1}, "conditions": [{"type": "Admitted", "status": "True", "lastTransitionTime": "2026-01-05T10:00:00Z"}, {"type": "Finished", "status": "True", "lastTransitionTime": "2026-01-05T10:30:00Z"}]}}`)
	const want = "1 job was evicted and admitted again"
	if out := clitest.Must(t, "trace", "get", "kubernetes", "--from", "evicted.json", "-o",
		"x.csv"); !strings.Contains(out, "x.csv: 1 job\n  note      "+want) {
		t.Errorf("printed %q", out)
	}
	if out := clitest.Must(t, "trace", "get", "kubernetes", "--from", "evicted.json", "-o", "x.csv",
		"--json"); !strings.Contains(out, `"notes":["`+want) {
		t.Errorf("printed %q", out)
	}
	if code, out, said := clitest.Run(t, "trace", "get", "kubernetes", "--from", "evicted.json", "-o", "-"); code !=
		cli.ExitDone || !strings.Contains(out, "1800") || !strings.Contains(said, want) || strings.Contains(out, want) {
		t.Errorf("exit code %d, printed %q, said %q", code, out, said)
	}
}
