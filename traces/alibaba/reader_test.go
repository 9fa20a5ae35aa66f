package alibaba

import (
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clustergym/traces"
)

const header = "task_name,instance_num,job_name,status,start_time,end_time,plan_cpu,plan_mem\n"

const s = time.Second

func read(t *testing.T, text string, o Options) ([]traces.Job, *Reader, error) {
	t.Helper()
	r, err := NewReader(strings.NewReader(text), "f.csv", o)
	if err != nil {
		return nil, nil, err
	}
	jobs, err := traces.ReadAll(r)
	return jobs, r, err
}

func TestAJobByHand(t *testing.T) {
	// M1 runs 10-40, M2 10-30; R3 needs both and ends at 45: 5 s of its own. J4 needs 3 and 9, which is missing, and
	// ends before 3 does: 0 s. task_x has no parents. All start at 10, as the trace records it.
	text := header +
		"M1,2,j_1,Terminated,10,40,100,0.5\nM2_Stg7,3,j_1,Terminated,10,30,50,0.25\nR3_1_2,1,j_1,Terminated,10,45,200,1\n" +
		"J4_3_9,4,j_1,Terminated,10,44,,\ntask_x,1,j_1,Terminated,12,60,100,0\n"
	for _, o := range []Options{{MachineMem: 1000}, {MachineMem: 1000, Unsorted: true}} {
		jobs, r, err := read(t, text, o)
		if err != nil {
			t.Fatal(err)
		}
		want := []traces.Job{{
			ID: "j_1", Submit: 10 * s, Work: 50 * s, GPUs: 11, GPUMilli: 1000, CPUMilli: 2*1000 + 3*500 + 2000 + 1000,
			MemBytes: 2*5 + 3*2 + 10,
			Status:   traces.Completed,
			Graph: &traces.Graph{
				Tasks: []traces.Task{
					{Name: "M1", Instances: 2, Work: 30 * s, CPUMilli: 1000, MemBytes: 5},
					{Name: "M2_Stg7", Instances: 3, Work: 20 * s, CPUMilli: 500, MemBytes: 2},
					{Name: "R3_1_2", Instances: 1, Work: 5 * s, CPUMilli: 2000, MemBytes: 10},
					{Name: "J4_3_9", Instances: 4},
					{Name: "task_x", Instances: 1, Work: 48 * s, CPUMilli: 1000},
				},
				Edges: []traces.Edge{{Parent: 0, Child: 2}, {Parent: 1, Child: 2}, {Parent: 2, Child: 3}},
			},
		}}
		if !reflect.DeepEqual(jobs, want) {
			t.Errorf("%+v\nwant %+v", jobs, want)
		}
		if r.Skipped() != nil || r.Moved() != 0 {
			t.Errorf("%v skipped, %d moved", r.Skipped(), r.Moved())
		}
	}
}

func TestMeasuredDurationsGoBeforeTheRule(t *testing.T) {
	text := "job_name,mean_instance_duration,task_name,instance_num,status,start_time,end_time,plan_cpu,plan_mem\r\n" +
		"j,7.5,M1,1,Terminated,0,10,100,1\r\nj,,R2_1,1,Terminated,0,14,100,1\r\n\r\n"
	jobs, _, err := read(t, text, Options{})
	if err != nil || len(jobs) != 1 || jobs[0].Graph.Tasks[0].Work != 7500*time.Millisecond ||
		jobs[0].Graph.Tasks[1].Work != 4*s {
		t.Errorf("%+v, %v", jobs, err)
	}
}

func TestNamesAreReadByTheirGrammar(t *testing.T) {
	for _, c := range []struct {
		name    string
		number  int32
		parents []int32
	}{
		{"M1", 1, []int32{}}, {"R4_1_2_3", 4, []int32{1, 2, 3}}, {"J12_3_Stg5", 12, []int32{3}}, {"L2_Stg1", 2, []int32{}},
		{"J17_16_15_14_13_12_11_10_9_8_7_6_5_4_3_2", 17, []int32{16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2}},
		{"J30_4_25_", 30, []int32{4, 25}},
		{"task_NzE3", 0, nil}, {"MergeTask", 0, nil}, {"M", 0, nil}, {"", 0, nil}, {"M1_x", 0, nil},
		{"M1_Stg", 0, nil}, {"M1_0", 0, nil}, {"M1__2", 0, nil}, {"M99999999999999999999", 0, nil}, {"1", 0, nil},
	} {
		n, p := parseName([]byte(c.name), nil)
		if n != c.number || len(p) != len(c.parents) {
			t.Errorf("%q: %d %v, want %d %v", c.name, n, p, c.number, c.parents)
		}
		for i := range p {
			if p[i] != c.parents[i] {
				t.Errorf("%q: parents %v, want %v", c.name, p, c.parents)
			}
		}
	}
	jobs, _, err := read(t, header+"M1,1,j,Terminated,0,10,100,1\nJ3_1_,1,j,Terminated,0,15,100,1\n", Options{})
	if err != nil || len(jobs[0].Graph.Edges) != 1 {
		t.Errorf("a cut name: %+v, %v", jobs, err)
	}
}

func TestJobsThatDidNotEndAreCountedByReason(t *testing.T) {
	text := header + "M1,1,a,Terminated,5,9,100,1\nR2_1,,a,Waiting,0,0,,\n" +
		"M1,1,b,Failed,5,9,100,1\nR2_1,,b,Waiting,0,0,,\n" +
		"M1,1,c,Running,6,0,100,1\nR2_1,,c,Waiting,0,0,,\n" +
		"M1,,d,Terminated,7,9,100,1\nM1,1,e,Terminated,8,9,100,1\nM1,1,f,Failed,9,9,1,1\n"
	for _, o := range []Options{{}, {Unsorted: true}} {
		jobs, r, err := read(t, text, o)
		if err != nil || len(jobs) != 1 || jobs[0].ID != "e" {
			t.Fatalf("%+v, %v", jobs, err)
		}
		want := []traces.Skip{{Reason: "job with a task that is Waiting", Count: 1},
			{Reason: "job with a task that is Failed", Count: 2},
			{Reason: "job with a task that is Running", Count: 1}, {Reason: "job without instances", Count: 1}}
		if got := r.Skipped(); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

func TestRowsInAnyOrderArePutTogetherOnlyWhenAsked(t *testing.T) {
	apart := header + "M1,1,a,Terminated,5,9,100,1\nM1,1,b,Terminated,3,8,100,1\nR2_1,2,a,Terminated,5,12,100,1\n"
	jobs, r, err := read(t, apart, Options{Unsorted: true})
	if err != nil || len(jobs) != 2 || jobs[0].ID != "b" || jobs[1].GPUs != 3 || jobs[1].Work != 7*s || r.Moved() != 1 {
		t.Errorf("%+v, %v", jobs, err)
	}
	for _, c := range []struct{ text, want string }{
		{apart, `f.csv:3: start_time: got "3", want 5 or later`},
		{header + "M1,1,a,Terminated,5,9,100,1\nM1,1,b,Terminated,6,8,100,1\nR2_1,2,a,Terminated,5,12,100,1\n",
			`f.csv:4: job_name: got "a", want all rows of a job together (--sort`},
	} {
		_, r, err := read(t, c.text, Options{})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
		var j traces.Job
		if again := r.Next(&j); again != err {
			t.Errorf("then %v", again)
		}
	}
}

func TestFaultsNameTheirPlace(t *testing.T) {
	row := "M1,1,a,Terminated,5,9,100,1\n"
	for _, c := range []struct{ text, want string }{
		{"", "f.csv:1: got \"\", want a header with task_name"},
		{"task_name,job_name,status,start_time,end_time,plan_cpu\n", "want a header with also instance_num, plan_mem"},
		{strings.Replace(header, "plan_cpu", "job_name", 1), `f.csv:1: job_name: got "job_name", want each column once`},
		{header + row + "M2,1,a\n", `f.csv:3: got "3 fields", want 8`},
		{header + "M1,1.5,a,Terminated,5,9,100,1\n", `f.csv:2: instance_num: got "1.5", want a whole number`},
		{header + "M1,1,a,Terminated,-5,9,100,1\n", `f.csv:2: start_time: got "-5", want seconds`},
		{header + "M1,1,a,Terminated,5,x,100,1\n", `f.csv:2: end_time: got "x", want seconds`},
		{header + "M1,1,a,Terminated,5,9,1e30,1\n", `f.csv:2: plan_cpu: got "1e30", want 100 for each core`},
		{header + "M1,1,a,Terminated,5,9,1,-1\n", `f.csv:2: plan_mem: got "-1", want percent`},
		{header + strings.Repeat("task_,2000000000,a,Terminated,5,9,100,1\n", 2),
			`f.csv:2: instance_num: got "a", want a job of at most`},
	} {
		for _, o := range []Options{{}, {Unsorted: true}} {
			if _, _, err := read(t, c.text, o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: got %v, want %s", c.text, err, c.want)
			}
		}
	}
}

func TestJobsOfOddRowsAreLeftOutAndCounted(t *testing.T) {
	const row = "M1,3,z,Terminated,900,907,50,0.2\n"
	for text, want := range map[string]string{
		"M5_12_15_21_33_41_44_1,7,a,Terminated,500,540,50,0.3\nR1_5,1,a,Terminated,500,544,50,0.2\n": Circle +
			" (first in line 2)",
		"M1_1,3,a,Terminated,500,507,50,0.2\n": Circle +
			" (first in line 2)",
		"M1,1,a,Terminated,500,507,,\nR2_1_3,1,a,Terminated,500,507,,\nR3_2,1,a,Terminated,500,507,,\n": Circle +
			" (first in line 2)",
		"M1,1,a,Terminated,500,509,,\nR1_2,1,a,Terminated,500,509,,\n": NumberTwice +
			" (first in line 3)",
		"M1,1,a,Terminated,500,499,,\n": EndFirst +
			" (first in line 2)",
		"M1,1,a,Terminated,500,,,\n": NoTimes +
			" (first in line 2)",
		"M1,1,a,Terminated,NaN,500,,\n": NoTimes +
			" (first in line 2)",
		",1,a,Terminated,500,501,,\n": NoName +
			" (first in line 2)",
		"M1,1,,Terminated,500,501,,\n": NoJob +
			" (first in line 2)",
		"M1_1,1,a,Running,500,0,,\n":             "job with a task that is Running",
		"M1,NaN,a,Terminated,500,501,None,NaN\n": "job without instances",
	} {
		for _, o := range []Options{{}, {Unsorted: true}} {
			jobs, r, err := read(t, header+text+row, o)
			if err != nil || len(jobs) != 1 || jobs[0].ID != "z" ||
				!reflect.DeepEqual(r.Skipped(), []traces.Skip{{Reason: want, Count: 1}}) {
				t.Errorf("%q: %v, %d jobs, %v\nwant %s", text, err, len(jobs), r.Skipped(), want)
			}
		}
	}
}

func TestSniff(t *testing.T) {
	for text, want := range map[string]bool{
		header: true, "\xef\xbb\xbf\"job_name\",\"task_name\",start_time,instance_num\r\nx": true,
		"": false, "submit_time,duration,num_gpu\n": false, "task_name,job_name,start_time\n": false,
	} {
		if Sniff([]byte(text)) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

func TestPlannedMemoryIsAShareOfTheMachine(t *testing.T) {
	for _, c := range []struct{ n, milliPercent, want int64 }{{0, 5, 0}, {1 << 40, 100_000, 1 << 40}, {1000, 500, 5},
		{999, 100, 0}, {1 << 62, 1 << 62, most}} {
		if got := share(c.n, c.milliPercent); got != c.want {
			t.Errorf("share(%d, %d) = %d, want %d", c.n, c.milliPercent, got, c.want)
		}
	}
}

// Any order of rows gives the same jobs.
func TestOrderOfRowsChangesNothing(t *testing.T) {
	rows := []string{"M1,1,a,Terminated,5,9,100,1\n", "R2_1,4,a,Terminated,5,12,100,1\n",
		"J3_2_1,1,a,Terminated,5,20,100,1\n",
		"M1,1,b,Terminated,6,8,100,1\n", "M1,7,c,Terminated,9,8000,50,1\n", "M2,7,c,Failed,9,8000,50,1\n"}
	want, _, err := read(t, header+strings.Join(rows, ""), Options{})
	if err != nil || len(want) != 2 {
		t.Fatal(want, err)
	}
	works := func(jobs []traces.Job) map[string]time.Duration {
		m := map[string]time.Duration{}
		for _, j := range jobs {
			m[j.ID] = j.Work
			for _, k := range j.Graph.Tasks {
				m[j.ID+k.Name] = k.Work
			}
		}
		return m
	}
	rapid.Check(t, func(rt *rapid.T) {
		got, _, err := read(t, header+strings.Join(rapid.Permutation(rows).Draw(rt, "rows"), ""), Options{Unsorted: true})
		if err != nil || !reflect.DeepEqual(works(got), works(want)) || got[0].Submit > got[1].Submit {
			rt.Fatalf("%+v, %v", got, err)
		}
	})
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(header + "M1,1,a,Terminated,5,9,100,1\nR2_1,1,a,Terminated,5,9,100,1\n"))
	f.Add([]byte(header + "J3_1_,1,a,Failed,5,9,,\ntask_x,,b,Waiting,0,0,,\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, o := range []Options{{}, {Unsorted: true, MachineMem: 1 << 40}} {
			r, err := NewReader(strings.NewReader(string(b)), "f", o)
			if err != nil {
				continue
			}
			last := time.Duration(0)
			for {
				var j traces.Job
				if err := r.Next(&j); err == io.EOF {
					break
				} else if err != nil {
					break
				}
				if _, ok := j.Graph.Order(nil); !ok {
					t.Fatalf("a cycle: %+v", j)
				}
				if j.Submit < last || j.Work < 0 || j.GPUs < 1 || j.CPUMilli < 0 || j.MemBytes < 0 {
					t.Fatalf("%+v", j)
				}
				last = j.Submit
			}
		}
	})
}
