package openb

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"clustergym/traces"
)

const (
	s    = time.Second
	full = `name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
pod-a,12000,16384,1,1000,,LS,Running,100,400,110
pod-b,500,1,1,460,A|B|A,BE,Failed,50,60.5,55
pod-c,4000,2048,0,0,,Burstable,Succeeded,100,200,100
pod-d,4000,2048,8,1000,A,Guaranteed,Pending,120,130,
pod-e,4000,2048,2,1000,,,Running,120,130,130
`
)

func open(tb testing.TB, text string, o Options) *Reader {
	tb.Helper()
	d, err := NewReader(strings.NewReader(text), "t.csv", o)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func all(tb testing.TB, d *Reader) []traces.Job {
	tb.Helper()
	jobs, err := traces.ReadAll(d)
	if err != nil {
		tb.Fatal(err)
	}
	return jobs
}

func TestReadsAListInOrderOfSubmit(t *testing.T) {
	want := []traces.Job{
		{ID: "pod-b", Submit: 50 * s, Work: 5500 * time.Millisecond, GPUs: 1, GPUMilli: 460, GPUTypes: []string{"A", "B"},
			CPUMilli: 500, MemBytes: 1 << 20, Status: traces.Failed},
		{ID: "pod-a", Submit: 100 * s, Work: 290 * s, GPUs: 1, GPUMilli: 1000, CPUMilli: 12000, MemBytes: 16 << 30,
			Priority: 3},
		{ID: "pod-c", Submit: 100 * s, Work: 100 * s, GPUMilli: 1000, CPUMilli: 4000, MemBytes: 2 << 30, Priority: 1,
			Status: traces.Completed},
	}
	var turned strings.Builder // columns in reverse order
	for _, l := range strings.Split(strings.TrimSpace(full), "\n") {
		f := strings.Split(l, ",")
		for i := len(f) - 1; i >= 0; i-- {
			turned.WriteString(`"` + f[i] + `"` + map[bool]string{true: ",", false: "\n"}[i > 0])
		}
	}
	for name, in := range map[string]string{"as it is": full, "CR LF": strings.ReplaceAll(full, "\n", "\r\n"),
		"byte order mark, blank last lines": "\ufeff" + full + "\n  \n",
		"no end of line":                    strings.TrimSuffix(full, "\n"), "other order, quotes": turned.String()} {
		d := open(t, in, Options{})
		if got := all(t, d); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v\nwant\n%+v", name, got, want)
		}
		if d.Moved() != 1 || d.Timeless() ||
			!reflect.DeepEqual(d.Skipped(), []traces.Skip{{Reason: NeverPlaced, Count: 1}, {Reason: NoRunTime, Count: 1}}) {
			t.Errorf("%s: moved %d, timeless %v, skipped %v", name, d.Moved(), d.Timeless(), d.Skipped())
		}
		if !Sniff([]byte(in)) {
			t.Errorf("%s: not recognised", name)
		}
	}
}

func TestAListWithoutTimesIsSubmittedAt0(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		o    Options
		n    int
		work time.Duration
	}{
		"no times": {"name,cpu_milli,memory_mib,num_gpu,gpu_milli\nx,1,1,1,1000\ny,1,1,2,1000\n", Options{}, 2,
			time.Hour},
		"times not used": {full, Options{Static: true}, 5, time.Hour},
	} {
		d := open(t, c.text, c.o)
		jobs := all(t, d)
		if !d.Timeless() || len(jobs) != c.n || d.Moved() != 0 {
			t.Errorf("%s: %d jobs, timeless %v, moved %d", name, len(jobs), d.Timeless(), d.Moved())
		}
		for _, j := range jobs {
			if j.Submit != 0 || j.Work != c.work {
				t.Errorf("%s: %+v", name, j)
			}
		}
	}
}

func TestFaultsSayWhereWhatAndWhatWouldBeRight(t *testing.T) {
	const head = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time,scheduled_time,deletion_time\n"
	for name, c := range map[string]struct{ text, want string }{
		"empty file": {"", `t.csv:1: got "", want a header with name, cpu_milli, memory_mib, num_gpu, gpu_milli`},
		"columns missing": {"name,cpu_milli,num_gpu,x\n",
			`t.csv:1: got "name,cpu_milli,num_gpu,x", want a header with also memory_mib, gpu_milli`},
		"a column twice": {"name,name\n", `t.csv:1: name: got "name", want each column once`},
		"a time missing": {"name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time\n",
			`want all of creation_time, scheduled_time, deletion_time in the header, or none`},
		"a field missing":  {head + "a,1\n", `t.csv:2: got "2 fields", want 10, as in the header`},
		"cores in words":   {head + "a,x,1,1,1000,,LS,0,0,1\n", `t.csv:2: cpu_milli: got "x", want thousandths of a core`},
		"negative memory":  {head + "a,1,-1,1,1000,,LS,0,0,1\n", `t.csv:2: memory_mib: got "-1", want MiB`},
		"memory of an age": {head + "a,1,9e18,1,1000,,LS,0,0,1\n", `t.csv:2: memory_mib: got "9e18"`},
		"half a GPU": {head + "a,1,1,0.5,1000,,LS,0,0,1\n",
			`t.csv:2: num_gpu: got "0.5", want a whole number of GPUs`},
		"more than a GPU": {head + "a,1,1,1,1001,,LS,0,0,1\n",
			`t.csv:2: gpu_milli: got "1001", want thousandths of a GPU`},
		"nothing of a GPU": {head + "a,1,1,1,0,,LS,0,0,1\n", `t.csv:2: gpu_milli: got "0", want 1 to 1000`},
		"an empty type":    {head + "a,1,1,1,1000,A|,LS,0,0,1\n", `t.csv:2: gpu_spec: got "A|", want names joined by |`},
		"another class": {head + "a,1,1,1,1000,,Gold,0,0,1\n",
			`t.csv:2: qos: got "Gold", want LS, Guaranteed, Burstable or BE`},
		"no creation":   {head + "a,1,1,1,1000,,LS,,0,1\n", `t.csv:2: creation_time: got "", want seconds`},
		"scheduled NaN": {head + "a,1,1,1,1000,,LS,0,NaN,1\n", `t.csv:2: scheduled_time: got "NaN", want seconds`},
		"deleted too early": {head + "a,1,1,1,1000,,LS,0,5,4\n",
			`t.csv:2: deletion_time: got "4", want scheduled_time or later, 5`},
		"an open quote":      {head + "\"a,1\n", `t.csv:2: got "\"a,1", want a closing quote in the same line`},
		"text after a quote": {head + "\"a\"b,1\n", `t.csv:2: got "b,1", want a comma`},
		"a quote inside":     {head + "a\"b,1\n", `t.csv:2: got "a\"b", want quotes around the whole field`},
	} {
		_, err := NewReader(strings.NewReader(c.text), "t.csv", Options{})
		var re *traces.RowError
		if !errors.As(err, &re) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}

func TestSniffRefusesOtherTables(t *testing.T) {
	for _, text := range []string{"", "name", "sn,cpu_milli,memory_mib,gpu,model\n", "submit_time,duration,num_gpu\n",
		"name,cpu_milli,memory_mib,num_gpu,gpu_milli,other\n",
		"name\ncpu_milli,memory_mib,num_gpu,gpu_milli\n", "; name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"} {
		if Sniff([]byte(text)) {
			t.Errorf("%q is taken for a pod list", text)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(full), false)
	f.Add([]byte("name,cpu_milli,memory_mib,num_gpu,gpu_milli\r\n\"a\"\"\",1,1e0,0,0\r\n"), true)
	f.Fuzz(func(t *testing.T, b []byte, flag bool) {
		Sniff(b)
		d, err := NewReader(strings.NewReader(string(b)), "f", Options{Static: flag})
		if err != nil {
			return
		}
		rows := len(d.Jobs())
		for _, k := range d.Skipped() {
			rows += k.Count
		}
		if rows > len(b) {
			t.Fatalf("%d rows from %d bytes", rows, len(b))
		}
		for i, j := range d.Jobs() {
			if j.Submit < 0 || i > 0 && j.Submit < d.Jobs()[i-1].Submit || j.Work <= 0 || j.GPUs < 0 || j.GPUMilli < 1 ||
				j.GPUMilli > 1000 || j.CPUMilli < 0 || j.MemBytes < 0 {
				t.Fatalf("job %d: %+v", i, j)
			}
		}
	})
}

func BenchmarkReader(b *testing.B) {
	var text strings.Builder
	text.WriteString(
		"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n")
	const rows = 10000
	for i := range rows {
		fmt.Fprintf(&text, "pod-%04d,%d,%d,1,%d,%s,LS,Succeeded,%d,%d.0,%d.0\n", i, 1000+i%977, 2048+i%4001, 1+i%1000,
			[...]string{"", "T4", "V100M16|V100M32"}[i%3], i, 2*i+5, i+1)
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewReader(strings.NewReader(text.String()), "b", Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*rows/b.Elapsed().Seconds(), "rows/s")
}
