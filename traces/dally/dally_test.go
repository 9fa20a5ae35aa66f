package dally

import (
	"compress/gzip"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"clustergym/traces"
)

func read(t *testing.T, text string) ([]traces.Job, error) {
	t.Helper()
	r, err := NewReader(strings.NewReader(text), "w.csv")
	if err != nil {
		return nil, err
	}
	return traces.ReadAll(r)
}

func TestWorkIsIterationsTimesTheirTimeOverTheGPUs(t *testing.T) {
	const text = "job,arrival,gpus,model,iterations,time_per_iteration,total_iterations_in_file,job_group\n" +
		"7,60.5,4,VGG,1000,0.02,2000,3\n5,10,1,BERT,50,2,50,1\n"
	jobs, err := read(t, text)
	if err != nil {
		t.Fatal(err)
	}
	want := []traces.Job{
		{ID: "5", Model: "BERT", Group: "1", Submit: 10 * time.Second, GPUs: 1, GPUMilli: 1000, Iterations: 50,
			Work: 100 * time.Second, Profile: Profile("BERT")},
		{ID: "7", Model: "VGG", Group: "3", Submit: 60500 * time.Millisecond, GPUs: 4, GPUMilli: 1000, Iterations: 1000,
			Work: 5 * time.Second, Profile: Profile("VGG")},
	}
	if !reflect.DeepEqual(jobs, want) {
		t.Errorf("got %+v", jobs)
	}
	if !Sniff([]byte(text)) || Sniff([]byte("job,arrival,gpus\n")) {
		t.Error("a workload is not told by its header")
	}
}

func TestJobsHaveGroupsWhereTheFileHasThem(t *testing.T) {
	const text = "job,arrival,gpus,model,iterations,time_per_iteration,job_group\n1,0,1,VGG,5,1,hunt\n2,0,1,VGG,5,1,\n3,0,1,VGG,5,1,hunt\n"
	for _, c := range []struct {
		text   string
		groups string
	}{{text, "hunt,,hunt"}, {strings.NewReplacer(",job_group", "", ",hunt", "", ",\n", "\n").Replace(text), ",,"}} {
		r, err := NewReader(strings.NewReader(c.text), "w.csv")
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := traces.ReadAll(r)
		if err != nil || len(jobs) != 3 {
			t.Fatalf("%v, %d jobs", err, len(jobs))
		}
		if got := jobs[0].Group + "," + jobs[1].Group + "," + jobs[2].Group; got != c.groups ||
			unsafe.StringData(jobs[0].Group) != unsafe.StringData(jobs[2].Group) {
			t.Errorf("groups %s, want %s, of one string each", got, c.groups)
		}
		if name, group := r.Named(); name || group != (c.groups != ",,") {
			t.Errorf("names %v, groups %v", name, group)
		}
	}
}

func TestBadRowsAreNamed(t *testing.T) {
	const header = "job,arrival,gpus,model,iterations,time_per_iteration\n"
	for _, c := range []struct{ row, want string }{
		{"1,0,0,VGG,5,1", "gpus"}, {"1,0,1,VGG,0,1", "iterations"}, {"1,0,1,VGG,5,-1", "time_per_iteration"},
		{"1,0,1,VGG,5,NaN", "time_per_iteration"}, {"1,-3,1,VGG,5,1", "arrival"},
		{"1,0,1,VGG,9007199254740991,1e9", "time_per_iteration"},
	} {
		_, err := read(t, header+c.row+"\n")
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "w.csv:2") {
			t.Errorf("%s: %v", c.row, err)
		}
	}
}

// stats are statistics of a workload of the authors.
type stats struct{ gpuHours, gpus, single, medianHours, skewed float64 }

func statsOf(jobs []traces.Job) stats {
	var s stats
	var hours []float64
	for i := range jobs {
		j := &jobs[i]
		h := j.Work.Hours() * float64(j.GPUs)
		s.gpuHours += h
		s.gpus += float64(j.GPUs)
		if j.GPUs == 1 {
			s.single++
		}
		if j.Profile.Skewed {
			s.skewed++
		}
		hours = append(hours, j.Work.Hours())
	}
	n := float64(len(jobs))
	for _, h := range hours {
		below := 0
		for _, o := range hours {
			if o < h {
				below++
			}
		}
		if below == len(hours)/2 {
			s.medianHours = h
		}
	}
	return stats{s.gpuHours / n, s.gpus / n, s.single / n, s.medianHours, s.skewed / n}
}

func TestGeneratedWorkloadsHaveTheStatisticsOfTheRecordedOnes(t *testing.T) {
	for _, c := range []struct {
		file  string
		multi bool
	}{{"batch500", false}, {"multi411", true}} {
		f, err := os.Open("../../../shared/groundtruth/dally/" + c.file + ".csv.gz")
		if err != nil {
			t.Skip("no recorded workloads in ../../../shared/groundtruth/dally")
		}
		defer f.Close() //nolint:errcheck // read only
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewReader(z, c.file)
		if err != nil {
			t.Fatal(err)
		}
		recorded, err := traces.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		want, got := statsOf(recorded), statsOf(Generate(Config{Jobs: 4000, PerDay: 100, Multi: c.multi}, 1))
		near := func(what string, a, b, by float64) {
			if math.Abs(a-b) > by*b {
				t.Errorf("%s: %s is %.3g, recorded %.3g", c.file, what, a, b)
			}
		}
		near("GPU-hours a job", got.gpuHours, want.gpuHours, .12)
		near("GPUs a job", got.gpus, want.gpus, .1)
		near("share of single GPUs", got.single, want.single, .1)
		near("median run time", got.medianHours, want.medianHours, .25)
		near("share of skewed models", got.skewed, want.skewed, .1)
	}
}

func TestArrivalsArePoissonOrAtOnce(t *testing.T) {
	jobs := Generate(Config{Jobs: 5000, PerDay: 50}, 2)
	if days := jobs[len(jobs)-1].Submit.Hours() / 24; math.Abs(days-100) > 5 {
		t.Errorf("5000 jobs, 50 a day, take %.1f days", days)
	}
	for _, j := range Generate(Config{Jobs: 50, MaxGPUs: 8}, 2) {
		if j.Submit != 0 || j.GPUs > 8 {
			t.Fatalf("job %+v of a batch of at most 8 GPUs", j)
		}
	}
	if !reflect.DeepEqual(Generate(Config{Jobs: 9, PerDay: 1}, 4), Generate(Config{Jobs: 9, PerDay: 1}, 4)) {
		t.Error("the same seed gives other jobs")
	}
}
