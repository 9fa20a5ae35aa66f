package dlrm

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"clustergym/traces"
)

const (
	s    = time.Second
	made = `instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time
i_0,HN,app_0,12,12,1,1,25,25,120.5,130.0,640.0,800.0,8,,,
i_1,CN,app_0,64,64,0,0,1,1,320.0,320.0,255.0,300.0,-1,,,900.00000000000001
i_2,CN,app_1,0.5,1,0,0,1,1,16.0,16.0,255.0,300.0,-1,475.00000000000006,480.00000000000006,500.0
i_3,HN,app_1,48,48,1,1,100,100,480.0,480.0,680.0,680.0,2,300,310,
i_4,HN,app_1,48,48,1,1,100,100,480.0,480.0,680.0,680.0,2,200,210,210
`
)

var (
	i2 = traces.Job{ID: "i_2", VC: "CN", Model: "app_1", Name: "app_1", Submit: 475 * s, Work: 20 * s, GPUMilli: 1000,
		CPUMilli: 500, MemBytes: 16 << 30}
	i3 = traces.Job{ID: "i_3", VC: "HN", Model: "app_1", Name: "app_1", Submit: 300 * s, Work: 690 * s, GPUs: 1,
		GPUMilli: 1000, CPUMilli: 48000, MemBytes: 480 << 30}
)

func TestReadsTheInstancesWhoseWholeLifeWasSeen(t *testing.T) {
	for name, in := range map[string]string{"as it is": made, "CR LF": strings.ReplaceAll(made, "\n", "\r\n"),
		"byte order mark, blank last line": "\ufeff" + made + "\n"} {
		d, err := NewReader(strings.NewReader(in), "t.csv", Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := traces.ReadAll(d)
		if err != nil || !reflect.DeepEqual(got, []traces.Job{i2}) {
			t.Errorf("%s: %v\n%+v\nwant\n%+v", name, err, got, i2)
		}
		if k := d.Skipped(); !reflect.DeepEqual(k,
			[]traces.Skip{{Reason: Throughout, Count: 1}, {Reason: Before, Count: 1}, {Reason: After, Count: 1},
				{Reason: NoRunTime, Count: 1}}) {
			t.Errorf("%s: skipped %v", name, k)
		}
		if !Sniff([]byte(in)) {
			t.Errorf("%s: not recognised", name)
		}
		if name, group := d.Named(); !name || group {
			t.Errorf("names %v, groups %v", name, group)
		}
	}
}

func TestAWindowKeepsTheInstancesThatReachOverItsEdges(t *testing.T) {
	d, err := NewReader(strings.NewReader(made), "t.csv", Options{Window: 1000 * s})
	if err != nil {
		t.Fatal(err)
	}
	got, err := traces.ReadAll(d)
	want := []traces.Job{
		{ID: "i_0", VC: "HN", Model: "app_0", Name: "app_0", Work: 1000 * s, GPUs: 1, GPUMilli: 1000, CPUMilli: 12000,
			MemBytes: 120<<30 + 1<<29},
		{ID: "i_1", VC: "CN", Model: "app_0", Name: "app_0", Work: 900 * s, GPUMilli: 1000, CPUMilli: 64000,
			MemBytes: 320 << 30},
		i3, i2,
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%+v\nwant\n%+v", err, got, want)
	}
	if k := d.Skipped(); d.Moved() != 1 || len(k) != 1 || k[0].Reason != NoRunTime {
		t.Errorf("moved %d, skipped %v", d.Moved(), k)
	}
}

func TestFaultsSayWhereWhatAndWhatWouldBeRight(t *testing.T) {
	const head = "instance_sn,role,app_name,cpu_request,gpu_request,memory_request,creation_time,scheduled_time,deletion_time\n"
	for name, c := range map[string]struct {
		text, want string
		o          Options
	}{
		"empty file": {"", `t.csv:1: got "", want a header with instance_sn`, Options{}},
		"columns missing": {"instance_sn,app_name,cpu_request,gpu_request,creation_time,scheduled_time\n",
			`want a header with also role, memory_request, deletion_time`, Options{}},
		"a field missing": {head + "a,HN\n", `t.csv:2: got "2 fields", want 9, as in the header`, Options{}},
		"cores in words":  {head + "a,HN,x,many,1,1,0,0,1\n", `t.csv:2: cpu_request: got "many", want vCPU`, Options{}},
		"half a GPU": {head + "a,HN,x,1,0.5,1,0,0,1\n", `t.csv:2: gpu_request: got "0.5", want a whole number`,
			Options{}},
		"negative memory":  {head + "a,HN,x,1,1,-1,0,0,1\n", `t.csv:2: memory_request: got "-1", want GiB`, Options{}},
		"memory of an age": {head + "a,HN,x,1,1,5e9,0,0,1\n", `t.csv:2: memory_request: got "5e9"`, Options{}},
		"creation nan":     {head + "a,HN,x,1,1,1,nan,0,1\n", `t.csv:2: creation_time: got "nan", want seconds`, Options{}},
		"created, then lost": {head + "a,HN,x,1,1,1,5,,9\n",
			`t.csv:2: scheduled_time: got "", want seconds, because creation_time is given`, Options{}},
		"deleted too early": {head + "a,HN,x,1,1,1,0,5,4\n",
			`t.csv:2: deletion_time: got "4", want scheduled_time or later, 5`, Options{}},
		"window too short": {head + "a,HN,x,1,1,1,0,5,\n",
			`t.csv:2: scheduled_time: got "5", want at most the length of the trace, 4s`, Options{Window: 4 * s}},
		"an open quote": {head + "\"a\n", `t.csv:2: got "\"a", want a closing quote`, Options{}},
	} {
		_, err := NewReader(strings.NewReader(c.text), "t.csv", c.o)
		var re *traces.RowError
		if !errors.As(err, &re) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(made), int64(0))
	f.Add([]byte(made), int64(1000*s))
	f.Fuzz(func(t *testing.T, b []byte, window int64) {
		Sniff(b)
		d, err := NewReader(strings.NewReader(string(b)), "f", Options{Window: time.Duration(window)})
		if err != nil {
			return
		}
		for i, j := range d.Jobs() {
			if j.Submit < 0 || i > 0 && j.Submit < d.Jobs()[i-1].Submit || j.Work <= 0 || j.GPUs < 0 || j.CPUMilli < 0 ||
				j.MemBytes < 0 {
				t.Fatalf("job %d: %+v", i, j)
			}
		}
	})
}
