package philly

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"clustergym/traces"
)

const s = time.Second

func made(tb testing.TB) string {
	tb.Helper()
	b, err := os.ReadFile("testdata/jobs.csv")
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

func TestReadsATableInOrderOfSubmit(t *testing.T) {
	work := 10500 * time.Millisecond
	want := []traces.Job{
		{ID: "1", VC: "def456", Work: work, GPUs: 8, GPUMilli: 1000},
		{ID: "3", VC: "def456", Work: work, GPUs: 8, GPUMilli: 1000},
		{ID: "4", VC: "abc123", Work: work, GPUs: 8, GPUMilli: 1000},
		{ID: "2", VC: "abc123", Submit: s, Work: 5 * s, GPUs: 2, GPUMilli: 1000},
		{ID: "5", VC: "def456", Submit: s, GPUs: 64, GPUMilli: 1000},
		{ID: "0", VC: "abc123", Submit: (4*24+1)*time.Hour + 30*time.Minute + s, Work: 66 * s, GPUs: 1, GPUMilli: 1000},
	}
	text := made(t)
	swap := strings.NewReplacer("timestamp,duration,num_gpus,gpu_time,cluster",
		"cluster,duration,timestamp,num_gpus").Replace("timestamp,duration,num_gpus,gpu_time,cluster\n")
	for _, l := range strings.Split(strings.TrimSpace(text), "\n")[1:] {
		f := strings.Split(l, ",")
		swap += strings.Join([]string{f[4], f[1], f[0], f[2]}, ",") + "\n"
	}
	for name, in := range map[string]string{"as it is": text, "CR LF": strings.ReplaceAll(text, "\n", "\r\n"),
		"other order, no gpu_time": swap} {
		d, err := NewReader(strings.NewReader(in), "t.csv")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := traces.ReadAll(d)
		if err != nil || !reflect.DeepEqual(got, want) || !reflect.DeepEqual(d.Jobs(), want) {
			t.Errorf("%s: %v\n%+v\nwant\n%+v", name, err, got, want)
		}
		if d.Moved() != 5 || d.Repeated() != 1 || d.Origin().Format(time.DateTime) != "2017-10-31 23:59:59" {
			t.Errorf("%s: moved %d, repeated %d, origin %v", name, d.Moved(), d.Repeated(), d.Origin())
		}
	}
	d, err := NewReader(strings.NewReader("timestamp,duration,num_gpus,gpu_time,cluster\n"), "t.csv")
	if err != nil || len(d.Jobs()) != 0 || !d.Origin().IsZero() {
		t.Errorf("no rows: %v", err)
	}
}

func TestClockAgreesWithTheStandardLibrary(t *testing.T) {
	for _, text := range []string{"2017-10-09 07:01:55", "2016-02-29 23:59:59", "2000-02-29 00:00:00",
		"1970-01-01 00:00:00", "2199-12-31 23:59:59"} {
		want, err := time.Parse(time.DateTime, text)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := clock([]byte(text)); !ok || got != time.Duration(want.Unix())*s {
			t.Errorf("%s: %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "2017-02-29 00:00:00", "2017-11-31 00:00:00", "2017-13-01 00:00:00",
		"2017-00-01 00:00:00", "2017-01-00 00:00:00", "2017-01-01 24:00:00",
		"2017-01-01 00:60:00", "2017-01-01 00:00:60", "2017-01-01T00:00:00", "2017-01-01 0:00:000", "1969-12-31 23:59:59",
		"2200-01-01 00:00:00", "2017-1-1 00:00:00", "2017-01-01 00:00:00Z", "20:7-01-01 00:00:00"} {
		if got, ok := clock([]byte(text)); ok {
			t.Errorf("%q is taken as %v", text, got)
		}
	}
}

func TestFaultsSayWhereWhatAndWhatWouldBeRight(t *testing.T) {
	const head = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,1,1,1,a\n"
	for name, c := range map[string]struct{ text, want string }{
		"empty file": {"", `t.csv:1: got "", want a header with timestamp, duration, num_gpus, cluster`},
		"another header": {"timestamp,duration,gpus,gpu_time,cluster\n",
			`t.csv:1: got "timestamp,duration,gpus,gpu_time,cluster", want a header`},
		"a column twice": {"timestamp,duration,num_gpus,cluster,cluster\n",
			`t.csv:1: cluster: got "cluster", want each column once`},
		"a field missing": {head + "2017-10-09 07:01:55,1,1,1\n", `t.csv:3: got "4 fields", want 5, as in the header`},
		"a time elsewhen": {head + "09.10.2017 07:01,1,1,1,a\n", `t.csv:3: timestamp: got "09.10.2017 07:01", want a time`},
		"negative":        {head + "2017-10-09 07:01:55,-1,1,1,a\n", `t.csv:3: duration: got "-1", want seconds, 0 or more`},
		"NaN":             {head + "2017-10-09 07:01:55,nan,1,1,a\n", `t.csv:3: duration: got "nan"`},
		"no GPU": {head + "2017-10-09 07:01:55,1,0,1,a\n",
			`t.csv:3: num_gpus: got "0", want a whole number of GPUs, 1 or more`},
		"half a GPU": {head + "2017-10-09 07:01:55,1,0.5,1,a\n", `t.csv:3: num_gpus: got "0.5"`},
	} {
		_, err := NewReader(strings.NewReader(c.text), "t.csv")
		var re *traces.RowError
		if !errors.As(err, &re) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(made(f)))
	f.Add([]byte("cluster,num_gpus,duration,timestamp\r\na,1e0,1e-9,1970-01-01 00:00:00\r\n"))
	f.Add([]byte("timestamp,duration,num_gpus,cluster\n2199-12-31 23:59:59,9223372036,1,\n1970-01-01 00:00:00,0,1,\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := NewReader(strings.NewReader(string(b)), "f")
		if err != nil {
			return
		}
		jobs := d.Jobs()
		if len(jobs) > len(b) || d.Moved() > len(jobs) || d.Repeated() > len(jobs) {
			t.Fatalf("%d jobs from %d bytes, %d moved, %d repeated", len(jobs), len(b), d.Moved(), d.Repeated())
		}
		for i, j := range jobs {
			if i == 0 && j.Submit != 0 || i > 0 && j.Submit < jobs[i-1].Submit || j.Work < 0 || j.GPUs < 1 {
				t.Fatalf("job %d: %+v", i, j)
			}
		}
	})
}

func BenchmarkReader(b *testing.B) {
	var text strings.Builder
	text.WriteString("timestamp,duration,num_gpus,gpu_time,cluster\n")
	const rows = 10000
	for i := range rows {
		fmt.Fprintf(&text, "2017-10-%02d %02d:%02d:%02d,%d.0,%d,%d.0,vc%d\n", 1+i%28, i%24, i%60, i*7%60, 1+i%977, 1+i%8, i,
			i%11)
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewReader(strings.NewReader(text.String()), "b"); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*rows/b.Elapsed().Seconds(), "rows/s")
}
