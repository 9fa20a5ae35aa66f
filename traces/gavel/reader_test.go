package gavel

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"clustergym/traces"
)

const s = time.Second

func made(tb testing.TB, name string) string {
	tb.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

func TestReadsSevenFieldsInOrderOfSubmit(t *testing.T) {
	want := []traces.Job{
		{ID: "0", Model: "ResNet-18 (batch size 64)", Name: "cd %s/a && python3 main.py --data_dir=%s/b --batch_size 64",
			GPUs: 1, GPUMilli: 1000, Iterations: 5000},
		{ID: "2", Model: "A3C", Name: "cd %s/rl && python3 main.py --env P", Submit: 30 * s, GPUs: 2, GPUMilli: 1000,
			Iterations: 700},
		{ID: "1", Model: "LM (batch size 20)", Name: "cd %s/lm && python main.py --cuda", Submit: 90500 * time.Millisecond,
			GPUs: 4, GPUMilli: 1000, Iterations: 12000},
	}
	text := made(t, "seven.trace")
	for name, in := range map[string]string{"as it is": text,
		"CR LF and a mark": "\ufeff" + strings.ReplaceAll(text, "\n", "\r\n") + "\r\n\n", "no end": strings.TrimSpace(text)} {
		d, err := NewReader(strings.NewReader(in), "t.trace")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := traces.ReadAll(d)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n%+v\nwant\n%+v", name, err, got, want)
		}
		if d.Moved() != 1 || d.Skipped() != nil {
			t.Errorf("%s: moved %d, skipped %v", name, d.Moved(), d.Skipped())
		}
	}
}

func TestReadsTenFieldsWhoseOrderDiffers(t *testing.T) {
	d, err := NewReader(strings.NewReader(made(t, "ten.trace")), "t.trace")
	if err != nil {
		t.Fatal(err)
	}
	got, err := traces.ReadAll(d)
	want := []traces.Job{
		{ID: "2", Model: "A3C", Name: "python3 main.py --env P", GPUs: 2, GPUMilli: 1000, Iterations: 700, Priority: 1,
			SLO: 10},
		{ID: "0", Model: "LM (batch size 20)", Name: "python main.py --cuda", Submit: 10 * s, GPUs: 4, GPUMilli: 1000,
			Iterations: 12000, Priority: 2, SLO: 1.5},
		{ID: "1", Model: "ResNet-18 (batch size 64)", Name: "python3 main.py --data_dir=%s/b", Submit: 10 * s, GPUs: 1,
			GPUMilli: 1000, Iterations: 5000, Priority: 1},
	}
	if err != nil || !reflect.DeepEqual(got, want) || d.Moved() != 1 {
		t.Errorf("%v\n%+v\nwant\n%+v\n%d moved", err, got, want, d.Moved())
	}
}

func TestTheCommandIsTheName(t *testing.T) {
	d, err := NewReader(strings.NewReader("A\trun a\t-n\t1\t5\t0.0\t1\nA\t\t-n\t1\t5\t0.0\t1\nB\trun a\t-n\t1\t5\t0.0\t1\nA\trun b\t-n\t1\t5\t0.0\t1\n"), "t.trace")
	if err != nil {
		t.Fatal(err)
	}
	if name, group := d.Named(); !name || group {
		t.Errorf("names %v, groups %v", name, group)
	}
	jobs, err := traces.ReadAll(d)
	if err != nil || len(jobs) != 4 || jobs[0].Name != "run a" || jobs[1].Name != "" || jobs[2].Name != "run a" ||
		jobs[3].Name != "run b" {
		t.Fatalf("%v, %+v", err, jobs)
	}
	if unsafe.StringData(jobs[0].Name) != unsafe.StringData(jobs[2].Name) {
		t.Error("jobs do not share their names")
	}
}

func TestFaultsSayWhereWhatAndWhatWouldBeRight(t *testing.T) {
	const seven, ten = "A\tc\t-n\t1\t5\t0.0\t1\n", "A\tc\td\t-n\t1\t5\t1\t1\t-1.0\t0\n"
	for name, c := range map[string]struct{ text, want string }{
		"another table": {"a,b,c\n", `t.trace:1: got "1 field", want 7 or 10, separated by tabs`},
		"eight":         {"A\tc\t-n\t1\t5\t0.0\t1\t2\n", `t.trace:1: got "8 fields", want 7 or 10, separated by tabs`},
		"both layouts":  {seven + "\n" + ten, `t.trace:3: got "10 fields", want 7, as in the first row`},
		"no job type":   {seven + " \tc\t-n\t1\t5\t0.0\t1\n", `t.trace:2: job type: got "", want a name`},
		"data folder": {"A\tc\t-n\t2\t5\t0.0\t1\n",
			`t.trace:1: needs data folder: got "2", want a whole number from 0 to 1`},
		"no steps":        {"A\tc\t-n\t1\t0\t0.0\t1\n", `t.trace:1: total steps: got "0", want a whole number, 1 or more`},
		"half a step":     {"A\tc\t-n\t1\t5.5\t0.0\t1\n", `t.trace:1: total steps: got "5.5"`},
		"before the time": {"A\tc\t-n\t1\t5\t-1\t1\n", `t.trace:1: arrival time: got "-1", want seconds, 0 or more`},
		"no GPU": {"A\tc\t-n\t1\t5\t0.0\t0\n",
			`t.trace:1: scale factor: got "0", want a whole number from 1 to 1073741824`},
		"half a weight": {"A\tc\td\t-n\t1\t5\t1\t0.5\t-1\t0\n",
			`t.trace:1: priority weight: got "0.5", want a whole number from 0`},
		"SLO of 0": {"A\tc\td\t-n\t1\t5\t1\t1\t0.0\t0\n",
			`t.trace:1: SLO: got "0.0", want a multiple of the run time above 0, or -1`},
		"SLO of NaN": {"A\tc\td\t-n\t1\t5\t1\t1\tnan\t0\n", `t.trace:1: SLO: got "nan"`},
	} {
		_, err := NewReader(strings.NewReader(c.text), "t.trace")
		var re *traces.RowError
		if !errors.As(err, &re) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}

func TestSniff(t *testing.T) {
	for in, want := range map[string]bool{
		made(t, "seven.trace"): true, made(t, "ten.trace"): true, "\ufeff\r\n" + made(t, "ten.trace"): true,
		"": false, "job_id,num_gpu\n": false, "a\tb\tc\td\te\tf\tg\n": false, "1\t2\t3\t4\t5\t6\t7\t8\t9\t10\n": false,
	} {
		if got := Sniff([]byte(in)); got != want {
			t.Errorf("%.30q: %v", in, got)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(made(f, "seven.trace")))
	f.Add([]byte(made(f, "ten.trace")))
	f.Add([]byte("A\t\t\t\t1e0\t5e3\t1\t7\t1e12\t9223372036\r\n\r\nA\t\t\t\t0\t1\t1\t0\t-9\t0\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := NewReader(strings.NewReader(string(b)), "f")
		if err != nil {
			return
		}
		jobs, err := traces.ReadAll(d)
		if err != nil || len(jobs)*7 > len(b)+7 || d.Moved() > len(jobs) || len(jobs) > 0 && !Sniff(b) {
			t.Fatalf("%d jobs from %d bytes, %d moved, %v", len(jobs), len(b), d.Moved(), err)
		}
		for i, j := range jobs {
			if i > 0 && j.Submit < jobs[i-1].Submit || j.Submit < 0 || j.Work != 0 || j.GPUs < 1 || j.Iterations < 1 ||
				j.Model == "" || !(j.SLO >= 0) {
				t.Fatalf("job %d: %+v", i, j)
			}
		}
	})
}
