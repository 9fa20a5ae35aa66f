package workload

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/internal/fault"
	"clustergym/traces"
	"clustergym/traces/csv"
)

const (
	native   = "job_id,submit_time,duration,num_gpu,estimate\na,0,10,1,20\nb,5,30,2,\nc,9,5,0.5,7\n"
	unsorted = "job_id,submit_time,duration,num_gpu\na,9,10,1\nb,5,30,2\nc,7,5,1\n"
	table    = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,60.0,1,60.0,x\n2017-10-09 07:00:55,30.0,2,60.0,y\n" +
		"2017-10-09 07:00:55,30.0,2,60.0,y\n"
	workload = "; MaxProcs: 64\n; Note: made up\n" +
		"1 0 -1 100 4 -1 -1 4 200 -1 1 3 1 -1 -1 -1 -1 -1\n" +
		"2 5 -1 0 4 -1 -1 4 200 -1 1 3 1 -1 -1 -1 -1 -1\n" +
		"3 6 -1 50 8 -1 -1 8 -1 -1 1 3 1 -1 -1 -1 -1 -1\n"
)

// file writes a file into the test's folder and returns its path.
func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func packed(t *testing.T, content string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, content); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFormatsAreFoundByContent(t *testing.T) {
	for _, c := range []struct{ what, content, want string }{
		{"native", native, FormatCSV},
		{"native with mark, CR LF and quotes", "\xef\xbb\xbf\"submit_time\", duration ,num_gpu\r\n0,1,1\r\n", FormatCSV},
		{"native with a column missing", "submit_time,duration\n0,1\n", FormatCSV},
		{"philly", table, formatPhilly},
		{"philly with columns in another order", "cluster,timestamp,num_gpus,duration\n", formatPhilly},
		{"log with comments", workload, FormatSWF},
		{"log without comments", workload[strings.Index(workload, "1 0"):], FormatSWF},
		{"blank lines first", "\n \n" + workload, FormatSWF},
		{"17 numbers", strings.Repeat("1 ", 17) + "\n", ""},
		{"words", "hello world\n", ""},
		{"other csv", "id,start,end\n1,2,3\n", ""},
		{"binary", "\x00\x01\x02\x03", ""},
		{"nothing", "", ""},
		{"blanks", "\n\n  \n", ""},
	} {
		if got := sniff([]byte(c.content)); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

func TestOpenTraceReadsWhatItSays(t *testing.T) {
	idle := []Skip{{"run time 0 or unknown", 1}}
	for _, c := range []struct {
		name, content string
		cfg           TraceConfig
		ids           string
		want          Info
	}{
		{"native.csv", native, TraceConfig{}, "a b c", Info{Format: FormatCSV, Read: 3, Jobs: 3}},
		{"misleading.swf", native, TraceConfig{}, "a b c", Info{Format: FormatCSV, Read: 3, Jobs: 3}},
		{"packed.csv", packed(t, native), TraceConfig{}, "a b c", Info{Format: FormatCSV, Read: 3, Jobs: 3}},
		{"part.csv", native, TraceConfig{Skip: 1, Jobs: 1}, "b", Info{Format: FormatCSV, Read: 2, Jobs: 1, Passed: 1}},
		{"unsorted.csv", unsorted, TraceConfig{Sort: true}, "b c a", Info{Format: FormatCSV, Read: 3, Jobs: 3, Moved: 2}},
		{"philly.csv", table, TraceConfig{}, "1 2 0", Info{Format: formatPhilly, Read: 3, Jobs: 3, Moved: 2, Repeated: 1}},
		{"log.swf", workload, TraceConfig{}, "1 3",
			Info{Format: FormatSWF, Read: 3, Jobs: 2, Dropped: 1, Skipped: idle, Procs: 64}},
		{"skip counts after drops", workload, TraceConfig{Skip: 1}, "3",
			Info{Format: FormatSWF, Read: 3, Jobs: 1, Passed: 1, Dropped: 1, Skipped: idle, Procs: 64}},
		{"log sorted", workload, TraceConfig{Sort: true, Format: FormatSWF}, "1 3",
			Info{Format: FormatSWF, Read: 3, Jobs: 2, Dropped: 1, Skipped: idle, Procs: 64}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := DefaultTraceConfig()
			cfg.File, cfg.Skip, cfg.Jobs, cfg.Sort = file(t, c.name, c.content), c.cfg.Skip, c.cfg.Jobs, c.cfg.Sort
			if c.cfg.Format != "" {
				cfg.Format = c.cfg.Format
			}
			tr, err := OpenTrace(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			jobs, err := traces.ReadAll(tr)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, j := range jobs {
				ids = append(ids, j.ID)
			}
			if got := strings.Join(ids, " "); got != c.ids {
				t.Errorf("jobs %s, want %s", got, c.ids)
			}
			sum := sha256.Sum256([]byte(c.content))
			c.want.File, c.want.SHA256 = cfg.File, hex.EncodeToString(sum[:])
			got := tr.Info()
			got.Until = 0 // TestTheLatestTimeOfAFile
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if tr.Close() != nil || tr.Close() != nil {
				t.Error("closing twice is not harmless")
			}
		})
	}
}

func TestLoadTraceCompletesEstimatesOfLogs(t *testing.T) {
	cfg := DefaultTraceConfig()
	cfg.File = file(t, "log.swf", workload)
	jobs, info, err := LoadTrace(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if info.Assumed != 1 || jobs[0].Estimate != 200*time.Second || jobs[1].Estimate != 50*time.Second {
		t.Errorf("assumed %d, estimates %v and %v; want 1, 200 s as requested, 50 s as run", info.Assumed, jobs[0].Estimate,
			jobs[1].Estimate)
	}
	cfg.File = file(t, "native.csv", native)
	if jobs, info, err = LoadTrace(cfg); err != nil || info.Assumed != 0 || jobs[1].Estimate != 0 {
		t.Errorf("a native trace without estimate: %v, assumed %d, estimate %v; want none", err, info.Assumed,
			jobs[1].Estimate)
	}
}

func TestGeneratedWorkloadsDependOnTheirSeedOnly(t *testing.T) {
	cfg := DefaultTraceConfig()
	cfg.Synth.Jobs = 300
	a, info, err := LoadTrace(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Info{File: "synth:philly", Format: FormatSynth, Read: 300, Jobs: 300, Seed: 1}); !reflect.DeepEqual(info,
		want) {
		t.Errorf("got %+v, want %+v", info, want)
	}
	write := func(jobs []traces.Job) string {
		var b bytes.Buffer
		if _, err := csv.Write(&b, &traces.Slice{Jobs: jobs}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	b, _, err := LoadTrace(cfg)
	if err != nil || write(a) != write(b) {
		t.Errorf("the same seed gave other jobs (%v)", err)
	}
	cfg.Seed = 2
	if c, _, err := LoadTrace(cfg); err != nil || write(a) == write(c) {
		t.Errorf("another seed gave the same jobs (%v)", err)
	}
	cfg.Seed, cfg.Skip, cfg.Jobs = 1, 100, 50
	if d, _, err := LoadTrace(cfg); err != nil || write(d) != write(a[100:150]) {
		t.Errorf("skip and jobs do not cut a part out (%v)", err)
	}
}

func TestTracesThatAreNoneAreTheUsersMistake(t *testing.T) {
	whole := packed(t, native)
	for _, c := range []struct{ name, content, want string }{
		{"none", "", "the file is empty"},
		{"words.txt", "hello world, how are you, this is a line that goes on for a good deal longer than is shown\n",
			"of no known format; known are csv"},
		{"cut.csv.gz", whole[:len(whole)-9], "cut short or damaged"},
		{"header.csv", "submit_time,duration,num_gpu\n", "there are no jobs"},
		{"missing.csv", "submit_time,duration\n0,1\n", "num_gpu"},
		{"unsorted.csv", unsorted, ":3: submit_time: got \"5\", want 9 or later"},
		{"negative.csv", "submit_time,duration,num_gpu\n0,-1,1\n", ":2: duration: got \"-1\""},
		{"words.swf", "; MaxProcs: 4\n1 2 3\n", ":2: got \"3 fields\""},
	} {
		cfg := DefaultTraceConfig()
		cfg.File = file(t, c.name, c.content)
		_, _, err := LoadTrace(cfg)
		if _, ok := errors.AsType[*fault.Mistake](err); !ok || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want a fault.Mistake of one line with %q", c.name, err, c.want)
		}
	}
	cfg := DefaultTraceConfig()
	cfg.File = filepath.Join(t.TempDir(), "nowhere.csv")
	_, _, err := LoadTrace(cfg)
	if _, ok := errors.AsType[*fault.Mistake](err); !ok || err.Error() != "trace "+cfg.File+": there is no such file" {
		t.Errorf("missing file: %v", err)
	}
	cfg = TraceConfig{Format: "xls", Skip: -1, Jobs: -1}
	err = cfg.Validate()
	for _, want := range []string{"format: got \"xls\"", "skip: got -1", "jobs: got -1", "synth.profile"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("faults %v, want also %s", err, want)
		}
	}
}

func TestReadingStopsWhenTheContextDoes(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cfg := DefaultTraceConfig()
	cfg.File = file(t, "long.csv", "submit_time,duration,num_gpu\n"+strings.Repeat("0,1,1\n", 200_000))
	tr, err := OpenTrace(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	cancel()
	if _, err := traces.ReadAll(tr); !errors.Is(err, context.Canceled) {
		t.Errorf("reading on gave %v, want context.Canceled", err)
	}
	if _, err := OpenTrace(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("opening gave %v, want context.Canceled", err)
	}
}

// Times that the clock of a run cannot hold are refused where a workload is read, whatever its format.
func TestTimesBeyondTheClockAreRefused(t *testing.T) {
	const head = "submit_time,duration,num_gpu,estimate\n0,1,1,1\n"
	for row, want := range map[string]string{
		"5e9,1,1,1\n": "job 1 is submitted at 1388888h53m20s, want a time from 0s to 146 years, where the clock ends",
		"1,5e9,1,1\n": "job 1 works 1388888h53m20s, want", "1,1,1,5e9\n": "job 1 is estimated to work 1388888h53m20s, want",
		"1,1e10,1,1\n": "below 292 years", "4e9,4e9,1,4e9\n": "",
	} {
		path := filepath.Join(t.TempDir(), "late.csv")
		if err := os.WriteFile(path, []byte(head+row), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := LoadTrace(TraceConfig{File: path, Format: FormatAuto, Synth: DefaultTraceConfig().Synth})
		var input *fault.Mistake
		if want == "" && err != nil || want != "" && (!errors.As(err, &input) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", row, err, want)
		}
	}
}

// A sample of GPU-times stays sorted and above 0 when a job of many GPUs runs for a century.
func TestGPUTimesDoNotWrapAround(t *testing.T) {
	times := ServiceOf([]traces.Job{{Work: traces.MaxTime, GPUs: 1 << 20, GPUMilli: 1000},
		{Work: time.Second, GPUs: 1, GPUMilli: 1000}})
	if len(times) != 2 || times[0] != time.Second || times[1] != traces.MaxTime {
		t.Errorf("got %v", times)
	}
}

func TestReadingIsToldAndStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var told []int
	ctx = WithReading(ctx, func(jobs int) {
		if told = append(told, jobs); len(told) == 2 {
			cancel()
		}
	})
	cfg := DefaultTraceConfig() // generated: no file whose reading could fail
	jobs, _, err := LoadTraceContext(ctx, cfg)
	if !errors.Is(err, context.Canceled) || jobs != nil || !slices.Equal(told, []int{readings, 2 * readings}) {
		t.Errorf("%d jobs, %v, told %v", len(jobs), err, told)
	}
}

// What the file mentions last is when it was written, and a job that was still running ran until then.
func TestTheLatestTimeOfAFile(t *testing.T) {
	cfg := DefaultTraceConfig()
	cfg.File = file(t, "jobs.csv", "submit_time,start_time,end_time,num_gpu\n1700000000,1700000010,1700000100,1\n"+
		"1700000050,1700000060,,1\n1700000070,,,2\n")
	for unended, want := range map[bool]string{false: "[1m30s ended]",
		true: "[1m30s ended 40s still running 0s still waiting]"} {
		cfg.Unended = unended
		jobs, info, err := LoadTrace(cfg)
		if err != nil || info.Until != 100*time.Second {
			t.Fatalf("%v, %+v", err, info)
		}
		var got []string
		for _, j := range jobs {
			got = append(got, j.Work.String(), j.Open.String())
		}
		if fmt.Sprint(got) != want {
			t.Errorf("unended %v: %v, want %s", unended, got, want)
		}
	}
}
