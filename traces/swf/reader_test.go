package swf

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"clustergym/traces"
)

const s = time.Second

func open(tb testing.TB, text string, o Options) *Reader {
	tb.Helper()
	d, err := NewReader(strings.NewReader(text), "t.swf", o)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func small(tb testing.TB) string {
	tb.Helper()
	b, err := os.ReadFile("testdata/small.swf")
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

// unstarted clears the recorded starts of jobs.
func unstarted(jobs []traces.Job) []traces.Job {
	for i := range jobs {
		jobs[i].Started, jobs[i].Waited = false, 0
	}
	return jobs
}

// The wait is the third field, -1 where it is unknown.
func TestRecordedStarts(t *testing.T) {
	jobs, err := traces.ReadAll(open(t, small(t), Options{}))
	if err != nil || len(jobs) != 4 || !jobs[0].Started || jobs[0].Waited != 5*s {
		t.Errorf("%+v, %v", jobs, err)
	}
	if jobs, err = traces.ReadAll(open(t, "1 10 -1 100 8 -1 -1 8 200 -1 1 7 3 2 -1 -1 -1 -1\n", Options{})); err != nil ||
		len(jobs) != 1 || jobs[0].Started {
		t.Errorf("%+v, %v", jobs, err)
	}
}

func TestReadsASmallLog(t *testing.T) {
	want := []traces.Job{
		{ID: "1", Submit: 10 * s, Work: 100 * s, Estimate: 200 * s, GPUs: 8, GPUMilli: 1000, User: "7", VC: "3", Model: "2",
			Name: "2", Group: "3", Status: traces.Completed},
		{ID: "2", Submit: 10 * s, Work: 50 * s, GPUs: 4, GPUMilli: 1000, User: "7", VC: "3", Group: "3",
			MemBytes: 4 * 512 << 10, Status: traces.Failed},
		{ID: "5", Submit: 15 * s, Work: 3500 * time.Millisecond, Estimate: 60 * s, GPUs: 2, GPUMilli: 1000,
			MemBytes: 2 * 2048 << 10, Status: traces.Cancelled},
		{ID: "6", Submit: 15 * s, Work: s, GPUs: 1, GPUMilli: 1000, User: "9", VC: "4", Model: "11", Name: "11", Group: "4",
			Status: traces.Completed},
	}
	text := small(t)
	for name, in := range map[string]string{"as it is": text, "CR LF": strings.ReplaceAll(text, "\n", "\r\n"),
		"tabs": strings.ReplaceAll(text, "   ", "\t")} {
		d := open(t, in, Options{})
		got, err := traces.ReadAll(d)
		if err != nil || !reflect.DeepEqual(unstarted(got), want) || d.Dropped() != 2 {
			t.Errorf("%s: %v, dropped %d\n%+v\nwant\n%+v", name, err, d.Dropped(), got, want)
		}
	}
	if name, group := open(t, text, Options{}).Named(); !name || !group {
		t.Error("a log can have names and groups")
	}
}

// Jobs share the strings of their names, so that a long log holds each once.
func TestNamesAndGroupsAreShared(t *testing.T) {
	got, err := traces.ReadAll(open(t,
		"1 0 -1 9 4 -1 -1 4 -1 -1 1 3 12 345 1 -1 -1 -1\n2 5 -1 9 4 -1 -1 4 -1 -1 1 3 12 345 1 -1 -1 -1\n", Options{}))
	if err != nil || len(got) != 2 || got[0].Name != "345" || got[0].Group != "12" || got[0].VC != "12" {
		t.Fatalf("%v, %+v", err, got)
	}
	for _, s := range [][2]string{{got[0].Name, got[1].Name}, {got[0].Group, got[1].Group}, {got[0].Name, got[0].Model}} {
		if unsafe.StringData(s[0]) != unsafe.StringData(s[1]) {
			t.Errorf("two copies of %q", s[0])
		}
	}
}

func TestHeaderIsKept(t *testing.T) {
	h := open(t, small(t), Options{}).Header()
	if h.Procs() != 64 || h["Note"] != "the first note\ngoes on here\nthe second note" || h["Queue"] != "1  batch: long" {
		t.Errorf("%d processors, %q", h.Procs(), h)
	}
	if v, ok := h.Int("UnixStartTime"); v != 1000000000 || !ok {
		t.Errorf("UnixStartTime %d, %v", v, ok)
	}
	if _, ok := h.Int("Computer"); ok {
		t.Error("a number of Computer")
	}
	if n := (Header{"MaxNodes": "16"}).Procs(); n != 16 || (Header{}).Procs() != 0 {
		t.Error("Procs without MaxProcs")
	}
	if d := open(t, "", Options{}); len(d.Header()) != 0 || d.Next(new(traces.Job)) != io.EOF {
		t.Error("an empty log")
	}
	d := open(t, strings.Repeat("; Note: "+strings.Repeat("x", 1000)+"\n", 2000), Options{})
	if n := len(d.Header()["Note"]); n > maxHeader || n < maxHeader/2 {
		t.Errorf("%d bytes of a long header kept", n)
	}
}

// line returns the line of a valid job with one field changed.
func line(field int, value string) string {
	f := strings.Fields("1 10 5 100 8 -1 -1 8 200 -1 1 7 3 2 1 -1 -1 -1")
	f[field] = value
	return strings.Join(f, " ") + "\n"
}

func TestFaultsSayWhereWhatAndWhatWouldBeRight(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"17 fields":       {"; x\n1 10 5 100 8 -1 -1 8 200 -1 1 7 3 2 1 -1 -1\n", `t.swf:2: got "17 fields", want 18`},
		"submit unknown":  {line(fieldSubmit, "-1"), `t.swf:1: submit time: got "-1", want seconds, 0 or more`},
		"submit in words": {line(fieldSubmit, "noon"), `t.swf:1: submit time: got "noon"`},
		"run time NaN":    {line(fieldRun, "NaN"), `t.swf:1: run time: got "NaN", want seconds`},
		"half a processor": {line(fieldAllocated, "0.5"),
			`t.swf:1: allocated processors: got "0.5", want a whole number`},
		"absurd processors": {line(fieldAllocated, "99999999999"),
			`t.swf:1: allocated processors: got "99999999999", want at most`},
		"requested time":   {line(fieldTime, "1h"), `t.swf:1: requested time: got "1h"`},
		"requested memory": {line(fieldMem, "2G"), `t.swf:1: requested memory: got "2G", want KB for each processor`},
		"absurd memory": {line(fieldMem, "9000000000000000000"),
			`t.swf:1: requested memory: got "9000000000000000000"`},
		"memory of all absurd": {line(fieldMem, "9000000000000000"),
			`t.swf:1: requested memory: got "9000000000000000", want KB for each processor, together`},
		"status":     {line(fieldStatus, "ok"), `t.swf:1: status: got "ok"`},
		"executable": {line(fieldExecutable, "a.out"), `t.swf:1: executable: got "a.out"`},
		"backwards": {line(fieldSubmit, "10") + line(fieldSubmit, "9"),
			`t.swf:2: submit time: got "9", want 10 or later, as in the job before (jobs must be in order of submit time; --sort puts them in order)`},
	} {
		_, err := traces.ReadAll(open(t, c.text, Options{}))
		var re *traces.RowError
		if !errors.As(err, &re) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
	jobs, err := traces.ReadAll(open(t, line(fieldSubmit, "10")+line(fieldSubmit, "9"), Options{Unsorted: true}))
	if err != nil || len(jobs) != 2 || jobs[1].Submit != 9*s {
		t.Errorf("unsorted: %v, %+v", err, jobs)
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(small(f)))
	f.Add([]byte(line(fieldMem, "123456789") + line(fieldAllocated, "-1")))
	f.Add([]byte(";;;:\n; a: b\n;\x00:\n1 1e300 1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := NewReader(strings.NewReader(string(b)), "f", Options{})
		if err != nil {
			return
		}
		d.Header().Procs()
		var j traces.Job
		last, n := time.Duration(0), 0
		for ; ; n++ {
			if err := d.Next(&j); err != nil {
				break
			}
			if j.Submit < last || j.Work <= 0 || j.GPUs < 1 || j.GPUMilli != 1000 || j.Estimate < 0 || j.MemBytes < 0 {
				t.Fatalf("%+v after %v", j, last)
			}
			last = j.Submit
		}
		if n > len(b) {
			t.Fatalf("%d jobs from %d bytes", n, len(b))
		}
	})
}

func BenchmarkReader(b *testing.B) {
	var text strings.Builder
	text.WriteString("; MaxProcs: 128\n")
	const rows = 10000
	for i := range rows {
		fmt.Fprintf(&text, "%5d %8d %6d %6d %3d     -1    -1  %3d %6d    -1  1 %3d %3d  -1 -1 -1 -1 -1\n", i+1, 13*i, 5,
			1+i%977, 1+i%64, 1+i%64, 600, 1+i%50, 1+i%9)
	}
	for name, o := range map[string]Options{"text": {}, "no text": {NoText: true}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(text.Len()))
			b.ReportAllocs()
			var j traces.Job
			for b.Loop() {
				d, err := NewReader(strings.NewReader(text.String()), "b", o)
				for err == nil {
					err = d.Next(&j)
				}
				if err != io.EOF {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*rows/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// Logs have words, groups of digits and products where the format has a number.
func TestNumbersOfAHeader(t *testing.T) {
	for text, want := range map[string]int{
		"128": 128, "128 (64 x 2)": 128, "1,024": 1024, "1'024": 1024, "12,288 cores": 12288,
		"430 (of which 352 are batch nodes)": 430, "128; 64 nodes": 128, "128, in 64 nodes": 128,
		"64 x 2": 128, "64x2": 128, "64 * 2 (two each)": 128, "64 × 2": 128, "128(64 x 2)": 128, "~ 128": 128, "128.": 128,
		"128.0": 128, "128 processors": 128, "128procs": 128, "128 - all of one kind": 128,
		"128 2-way nodes": 128, "128 64-bit processors": 128, "128\n(64 x 2)": 128, "128 xeons": 128,
		"1000000000 (Sun Sep  9 01:46:40 UTC 2001)": 1000000000, "-1": -1, "+5": 5, "1\u202f024": 1024,
		"1,024 x 2": 2048, "64 x 2,000": 128000, "128 [2 for logins]": 128, "128\t(64)": 128, "0": 0,
	} {
		if v, ok := (Header{"MaxProcs": text}).Int("MaxProcs"); !ok || v != want {
			t.Errorf("%q: %d, %v; want %d", text, v, ok, want)
		}
	}
	for _, text := range []string{"", "unknown", "about 128", "4K", "1.5", "10^3", "2024-01-31", "64/128", "64-128",
		"64 - 128", "1 024", "12,34", "1,0245", "99999999999999999999", "999999999 x 999999999", "x 2", "(128)", "1.024"} {
		if v, ok := (Header{"MaxProcs": text}).Int("MaxProcs"); ok {
			t.Errorf("%q: %d", text, v)
		}
	}
	for text, want := range map[string]int{
		"; MaxProcs: 128 (64 x 2)\n; MaxNodes: 64\n": 128, ";MaxProcs:128\n": 128, ";;; MaxProcs : 1,024\n": 1024,
		"; MAXPROCS: 128\n": 128, "; MaxNodes: 64 (2 processors each)\n": 64,
		"; MaxProcs: unknown\n; MaxNodes: 64\n": 64, "; MaxProcs: -1\n; MaxNodes: 64\n": 64,
		"; MaxProcs: 128\n; (64 x 2)\n": 128, "; Note: MaxProcs\n": 0,
	} {
		d, err := NewReader(strings.NewReader(text+"1 0 0 10 4 -1 -1 4 20 -1 1 1 1 1 1 1 -1 -1\n"), "t.swf", Options{})
		if err != nil || d.Header().Procs() != want {
			t.Errorf("%q: %v, %d processors, want %d", text, err, d.Header().Procs(), want)
		}
	}
}
