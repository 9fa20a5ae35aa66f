package sacct

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/traces"
)

func recorded(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name)) //nolint:gosec // of these tests
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What Slurm prints as text and as JSON, by two releases, gives the same jobs and leaves the same out.
func TestDocumentsGiveTheJobsOfText(t *testing.T) {
	byID := func(jobs []traces.Job) { // sacct prints text and JSON in different orders
		slices.SortFunc(jobs, func(a, b traces.Job) int { return strings.Compare(a.ID, b.ID) })
	}
	want, d, err := read(t, recorded(t, "22.05.txt"))
	if err != nil || len(want) != 12 {
		t.Fatalf("%v, %d jobs", err, len(want))
	}
	skipped := d.Skipped()
	byID(want)
	for _, name := range []string{"22.05.json", "23.11.json"} {
		text := recorded(t, name)
		jobs, d, err := read(t, text)
		if err != nil || len(jobs) != len(want) {
			t.Errorf("%s: %v, %d jobs", name, err, len(jobs))
			continue
		}
		byID(jobs)
		for i := range jobs {
			if jobs[i].Hosts == "" || jobs[i].Nodes != want[i].Nodes {
				t.Errorf("%s: job %s ran on %d nodes, %q", name, jobs[i].ID, jobs[i].Nodes, jobs[i].Hosts)
			}
			jobs[i].Hosts, jobs[i].Eligible = "", 0 // the text was recorded without
			if !reflect.DeepEqual(jobs[i], want[i]) {
				t.Errorf("%s:\n%+v\nwant\n%+v", name, jobs[i], want[i])
			}
		}
		if !slices.Equal(d.Skipped(), skipped) {
			t.Errorf("%s: left out %v, want %v", name, d.Skipped(), skipped)
		}
		for _, n := range []int{len(text), 1 << 16, 4000} {
			if !Sniff([]byte(text[:min(n, len(text))])) {
				t.Errorf("%s: not recognised by %d bytes", name, n)
			}
		}
	}
	job := func(id string) traces.Job {
		for _, j := range want {
			if j.ID == id {
				return j
			}
		}
		t.Fatalf("no job %s", id)
		return traces.Job{}
	}
	if j := job("28"); j.GPUs != 2 || !slices.Equal(j.GPUTypes, []string{"a100"}) || j.Work != 4*time.Second ||
		j.Estimate != 10*time.Minute || j.User != "ann" || j.Group != "lab" || j.MemBytes != 4<<30 {
		t.Errorf("%+v", j)
	}
	if j := job("32"); j.GPUs != 5 || j.Name != "het" {
		t.Errorf("the heterogeneous job is %+v", j)
	}
	if j := job("34"); j.Work != 106*time.Second {
		t.Errorf("the requeued job is %+v", j)
	}
	if j := job("29"); j.Name != "b ar" {
		t.Errorf("the job with a bar is %+v", j)
	}
}

func TestDocumentsThatAreNone(t *testing.T) {
	good := recorded(t, "23.11.json")
	for name, c := range map[string]struct{ text, want string }{
		"cut":          {good[:len(good)/2], "this is no document of sacct --json"},
		"cut at a job": {good[:strings.LastIndex(good, "\n]")], "unexpected EOF"},
		"no jobs":      {`{"meta": {}}`, "it has no jobs"},
		"no list":      {`{"jobs": 5}`, "jobs is no list"},
		"of squeue": {`{"jobs": [{"job_id": 5, "job_state": "PENDING"}]}`,
			"t.txt:2: this is no document of sacct --json: a job without job_id, state or time"},
		"that failed": {strings.Replace(good, `"errors": []`, `"errors": [{"description": "nobody", "error": "answers"}]`,
			1), "sacct says that it failed: nobody answers"},
		"a broken time": {strings.Replace(good, `"elapsed": 4`, `"elapsed": "long"`, 1), "want a whole number"},
		"resources": {strings.Replace(good, `"type": "cpu", "name": "", "id": 1, "count": 1}`,
			`"type": "cpu", "count": -7}`, 1), "AllocTRES"},
		"another": {`{"a": 1}`, "it has no jobs"},
	} {
		_, _, err := read(t, c.text)
		var re *traces.RowError
		if !errors.As(err, &re) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if Sniff([]byte(`{"jobs": [{"job_id": 5, "job_state": "PENDING"}]}`)) || Sniff([]byte(`{}`)) {
		t.Error("other documents are taken for sacct's")
	}
}

// A long document is not held in memory as text.
func TestDocumentsAreReadAsAStream(t *testing.T) {
	good := recorded(t, "22.05.json")
	cut := strings.LastIndex(good, "\n]")
	job := good[strings.LastIndex(good[:cut], "\n"):cut]
	r := io.MultiReader(strings.NewReader(good[:cut]), strings.NewReader(strings.Repeat(","+job, 1000)),
		strings.NewReader(good[cut:]))
	var out bytes.Buffer
	n, err := io.Copy(&out, AsText(r, "t.json"))
	if err != nil || bytes.Count(out.Bytes(), []byte{'\n'}) < 1000 || n == 0 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func FuzzAsText(f *testing.F) {
	f.Add(recorded(f, "22.05.json"))
	f.Add(recorded(f, "23.11.json"))
	f.Fuzz(func(t *testing.T, text string) {
		jobs, _, err := read(t, text)
		if err != nil {
			return
		}
		for i := range jobs {
			if err := jobs[i].CheckTimes(); err != nil {
				t.Error(err)
			}
		}
	})
}
