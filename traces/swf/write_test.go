package swf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clustergym/traces"
)

func written(tb interface{ Fatal(...any) }, jobs []traces.Job, h Header) string {
	var b bytes.Buffer
	if n, err := Write(&b, &traces.Slice{Jobs: jobs}, h); err != nil || n != len(jobs) {
		tb.Fatal(n, err)
	}
	return b.String()
}

func TestWritesALogByHand(t *testing.T) {
	got := written(t, []traces.Job{
		{ID: "4", Submit: 0, Work: 100 * s, Estimate: 900 * s, GPUs: 4, GPUMilli: 1000, User: "bob", VC: "7", Model: "bert",
			MemBytes: 4*1024*3 + 1, Status: traces.Completed},
		{ID: "4", Submit: 1500 * time.Millisecond, Work: s, GPUs: 1, GPUMilli: 1000, User: "1", VC: "x",
			Status: traces.Failed},
		{ID: "job", Submit: 2 * s, Work: 0, GPUs: 2, GPUMilli: 1000, User: "bob", VC: "1", Model: "0",
			Status: traces.Cancelled},
		{ID: "9", Submit: 2 * s, Work: s, GPUs: 2, GPUMilli: 1000, User: "2"},
		{ID: "10", Submit: 2 * s, Work: s, GPUs: 2, GPUMilli: 1000, Name: "train.sh", Group: "x"},
		{ID: "11", Submit: 2 * s, Work: s, GPUs: 2, GPUMilli: 1000, Name: "train.sh", Group: "lab", VC: "7", Model: "bert"},
	}, Header{"MaxProcs": "64", "Note": "one\ntwo", "Zebra": "z"})
	want := "; Version: 2.2\n; MaxProcs: 64\n; Note: one\n; Note: two\n; Zebra: z\n" +
		"4 0 -1 100 4 -1 -1 4 900 4 1 1 7 1 -1 -1 -1 -1\n" +
		"5 1.5 -1 1 1 -1 -1 1 -1 -1 0 2 1 -1 -1 -1 -1 -1\n" + // 1 is bob already
		"6 2 -1 0 2 -1 -1 2 -1 -1 5 1 2 2 -1 -1 -1 -1\n" + // 1 is x already
		"9 2 -1 1 2 -1 -1 2 -1 -1 -1 3 -1 -1 -1 -1 -1 -1\n" +
		"10 2 -1 1 2 -1 -1 2 -1 -1 -1 -1 1 3 -1 -1 -1 -1\n" +
		"11 2 -1 1 2 -1 -1 2 -1 -1 -1 -1 7 1 -1 -1 -1 -1\n" // its VC and model go first
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestAWrittenLogIsReadBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var jobs []traces.Job
		at, id := time.Duration(0), 0
		for range rapid.IntRange(0, 20).Draw(rt, "n") {
			at += time.Duration(rapid.IntRange(0, 5000).Draw(rt, "gap")) * time.Millisecond
			id += rapid.IntRange(1, 3).Draw(rt, "step")
			n := rapid.IntRange(1, 300).Draw(rt, "procs")
			name := func(what string, from int) string {
				if v := rapid.IntRange(from-1, 40).Draw(rt, what); v >= from {
					return strconv.Itoa(v)
				}
				return ""
			}
			jobs = append(jobs, traces.Job{
				ID: strconv.Itoa(id), Submit: at, Work: time.Duration(rapid.Int64Range(0,
					1<<50).Draw(rt, "work")), GPUs: n, GPUMilli: 1000,
				Estimate: time.Duration(rapid.Int64Range(0,
					1<<50).Draw(rt, "estimate")), MemBytes: int64(rapid.IntRange(0, 1<<20).Draw(rt, "kb")*n) << 10,
				User: name("user",
					0), VC: name("vc", 0), Model: name("model", 1), Status: traces.Status(rapid.IntRange(0, 3).Draw(rt, "status")),
			})
			j := &jobs[len(jobs)-1]
			j.Name, j.Group = j.Model, j.VC // as a log gives them
		}
		h := Header{"Version": "2.2", "MaxProcs": "300", "Note": "a: b\nc", "Odd": ""}
		d := open(t, written(rt, jobs, h), Options{Zero: true})
		got, err := traces.ReadAll(d)
		if err != nil || !reflect.DeepEqual(got, jobs) || d.Dropped() != 0 {
			rt.Fatalf("%v\n%+v\nwant\n%+v", err, got, jobs)
		}
		if len(jobs) > 0 && !reflect.DeepEqual(d.Header(), h) {
			rt.Fatalf("header %q, want %q", d.Header(), h)
		}
	})
}

func TestDifferentNamesGetDifferentNumbers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var n numbers
		got := map[int64]string{}
		for _, name := range rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "c", "0", "1", "2", "3", "01", "-1", "999999999999999999", "9999999999999999999"})).Draw(rt, "names") {
			v := n.of(name, 1)
			if old, ok := got[v]; ok && old != name || v < 1 {
				rt.Fatalf("%q and %q are both %d", name, old, v)
			}
			got[v] = name
		}
	})
}

func TestWhatALogCannotSayIsAnError(t *testing.T) {
	ok := traces.Job{ID: "1", Work: s, GPUs: 1, GPUMilli: 1000}
	for want, change := range map[string]func(*traces.Job){
		"0 GPUs at 1000 thousandths":   func(j *traces.Job) { j.GPUs = 0 },
		"1 GPUs at 500 thousandths":    func(j *traces.Job) { j.GPUMilli = 500 },
		"times and memory must be 0":   func(j *traces.Job) { j.Submit = -1 },
		"status 9: not one of those k": func(j *traces.Job) { j.Status = 9 },
	} {
		bad := ok
		change(&bad)
		n, err := Write(io.Discard, &traces.Slice{Jobs: []traces.Job{ok, bad}}, nil)
		if n != 1 || err == nil || !strings.Contains(err.Error(), "swf: job 1 (\"1\"): "+want) {
			t.Errorf("%d, %v, want %s", n, err, want)
		}
	}
	if _, err := Write(io.Discard, &traces.Slice{}, Header{"two words": "x"}); err == nil ||
		!strings.Contains(err.Error(), `"two words"`) {
		t.Errorf("%v", err)
	}
	broken := errors.New("disk full")
	if _, err := Write(failing{broken}, &traces.Slice{Jobs: []traces.Job{ok}}, nil); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestARecordHasEveryField(t *testing.T) {
	d := open(t,
		"1 2 3 4 5 6.5 7.6 8 9 10 1 12 13 14 15 16 17 18\n2 2 -1 4 5 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1\n3 2 x 4 5 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1\n", Options{NoText: true})
	var j traces.Job
	next := func() (*Record, error) {
		if err := d.Next(&j); err != nil {
			t.Fatal(err)
		}
		return d.Record()
	}
	got, err := next()
	want := Record{1, 2 * s, 3 * s, 4 * s, 5, 6500 * time.Millisecond, 8, 8, 9 * s, 10, 1, 12, 13, 14, 15, 16, 17, 18 * s}
	if err != nil || *got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	got, err = next()
	want = Record{2, 2 * s, -s, 4 * s, 5, -s, -1, -1, -s, -1, -1, -1, -1, -1, -1, -1, -1, -s}
	if err != nil || *got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if _, err := next(); err == nil || !strings.Contains(err.Error(), `t.swf:3: wait time: got "x", want seconds`) {
		t.Errorf("%v", err)
	}
}

func TestOptionsDecideWhatIsKept(t *testing.T) {
	text := "1 0 -1 0 4 -1 -1 8 -1 -1 5 3 1 2 -1 -1 -1 -1\n2 1 -1 -1 4 -1 -1 8 -1 -1 5 3 1 2 -1 -1 -1 -1\n" +
		"3 2 -1 9 4 -1 -1 8 -1 -1 1 3 1 2 -1 -1 -1 -1\n4 3 -1 9 4 -1 -1 -1 -1 -1 1 3 1 2 -1 -1 -1 -1\n5 4 -1 9 -1 -1 -1 -1 -1 -1 1 3 1 2 -1 -1 -1 -1\n"
	for _, c := range []struct {
		o     Options
		sizes string
		skips string
	}{
		{Options{}, "3:4 4:4 ", "[{run time 0 or unknown 2} {no processors 1}]"},
		{Options{Zero: true}, "1:4 3:4 4:4 ", "[{run time unknown 1} {no processors 1}]"},
		{Options{NoText: true}, ":4 :4 ", "[{run time 0 or unknown 2} {no processors 1}]"},
	} {
		d := open(t, text, c.o)
		jobs, err := traces.ReadAll(d)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, j := range jobs {
			fmt.Fprintf(&b, "%s:%d ", j.ID, j.GPUs)
			if c.o.NoText != (j.User == "" && j.VC == "" && j.Model == "") || c.o.NoText != (j.Name == "" && j.Group == "") {
				t.Errorf("%+v: names %q %q %q %q %q", c.o, j.User, j.VC, j.Model, j.Name, j.Group)
			}
		}
		if b.String() != c.sizes || fmt.Sprint(d.Skipped()) != c.skips || d.Dropped() != 5-len(jobs) {
			t.Errorf("%+v: %s, %v, want %s, %s", c.o, b.String(), d.Skipped(), c.sizes, c.skips)
		}
	}
}

func TestReadingWithoutTextAllocatesNothing(t *testing.T) {
	line := "7 13 -1 900 4 -1 -1 4 600 -1 1 3 1 2 -1 -1 -1 -1\n"
	d := open(t, strings.Repeat(line, 1000), Options{NoText: true})
	var j traces.Job
	if n := testing.AllocsPerRun(500, func() {
		if err := d.Next(&j); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a line", n)
	}
}

func BenchmarkWrite(b *testing.B) {
	jobs := make([]traces.Job, 10000)
	for i := range jobs {
		jobs[i] = traces.Job{ID: strconv.Itoa(i + 1), Submit: time.Duration(13*i) * s, Work: time.Duration(1+i%977) * s,
			GPUs: 1 + i%64, GPUMilli: 1000, User: strconv.Itoa(i % 50)}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Write(io.Discard, &traces.Slice{Jobs: jobs}, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*float64(len(jobs))/b.Elapsed().Seconds(), "rows/s")
}
