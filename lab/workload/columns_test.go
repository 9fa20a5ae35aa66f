package workload

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/traces"
	"clustergym/traces/csv"
)

const slurmish = "Job;Submitted;Elapsed;GPUs;Owner\na;2024-03-01 12:00:00;01:00:00;2;ann\nb;2024-03-01 12:00:30;1-00:00:00;0,5;bob\n"

var slurmishColumns = map[string]string{"job_id": "Job", "submit_time": "Submitted", "duration": "Elapsed",
	"num_gpu": "GPUs", "user": "Owner"}

// TraceConfig.Columns reaches the reader, from a file, from --set and from Go, and makes the file one of the native
// format.
func TestColumnsOfTheUsersOwnNames(t *testing.T) {
	path := file(t, "jobs.csv", slurmish)
	for name, text := range map[string]string{
		"a mapping": "columns: {job_id: Job, submit_time: Submitted, duration: Elapsed, num_gpu: GPUs, user: Owner}\n",
		"csv named": "format: csv\ndelimiter: semicolon\ncolumns: {job_id: job, submit_time: submitted, duration: ELAPSED, num_gpu: gpus, user: owner}\n",
		"sorted":    "sort: true\ndelimiter: ;\ncolumns: {job_id: Job, submit_time: Submitted, duration: Elapsed, num_gpu: GPUs, user: Owner}\n",
	} {
		cfg := DefaultTraceConfig()
		cfg.File = path
		if err := configs.DecodeBytes("x.yaml", []byte(text), &cfg); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		jobs, info, err := LoadTrace(cfg)
		want := []traces.Job{{ID: "a", User: "ann", Work: time.Hour, GPUs: 2, GPUMilli: 1000},
			{ID: "b", User: "bob", Submit: 30 * time.Second, Work: 24 * time.Hour, GPUs: 1, GPUMilli: 500}}
		if err != nil || !reflect.DeepEqual(jobs, want) || info.Format != FormatCSV ||
			!reflect.DeepEqual(info.Columns, cfg.Columns) {
			t.Errorf("%s: %v, %+v\n%+v", name, err, info, jobs)
		}
		if !strings.Contains(info.String(), "columns duration=") {
			t.Errorf("%s does not name the columns", info)
		}
	}
	cfg := DefaultTraceConfig()
	for _, set := range []string{"columns.submit_time=Submitted", "columns.num_gpu=GPUs", "columns.duration=Elapsed"} {
		if err := configs.Set(&cfg, set); err != nil {
			t.Error(err)
		}
	}
	cfg.File = path
	if jobs, _, err := LoadTrace(cfg); err != nil || len(jobs) != 2 || jobs[1].Work != 24*time.Hour {
		t.Errorf("%v, %+v", err, jobs)
	}
}

// A configuration without the keys is written as before them, so that run directories and scenarios keep their bytes.
func TestColumnsThatAreNotGivenAreNotWritten(t *testing.T) {
	cfg := DefaultTraceConfig()
	text, err := configs.Encode(&cfg)
	if err != nil || strings.Contains(string(text), "columns") || strings.Contains(string(text), "delimiter") {
		t.Errorf("%v\n%s", err, text)
	}
	cfg.Columns, cfg.Delimiter = slurmishColumns, "tab"
	text, err = configs.Encode(&cfg)
	again := DefaultTraceConfig()
	if err != nil || configs.DecodeBytes("x", text, &again) != nil || !reflect.DeepEqual(again, cfg) {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestFaultsOfColumnsAndDelimiters(t *testing.T) {
	path := file(t, "jobs.csv", slurmish)
	log := file(t, "log.swf", workload)
	for name, c := range map[string]struct {
		cfg  TraceConfig
		want string
	}{
		"unknown": {TraceConfig{Columns: map[string]string{"submit": "Submitted"}},
			`columns: got "submit=Submitted", want NAME=COLUMN with one of the format's names: submit_time, duration, num_gpu, job_id, user, vc, gpu_type, num_cpu, mem_gb, estimate, model, iterations, deadline, priority, min_gpu, max_gpu, status, start_time, end_time, name, group, nodes, hosts, state, eligible_time, workers; did you mean submit_time?`},
		"unknown, far": {TraceConfig{Columns: map[string]string{"x": "Submitted"}},
			`columns: got "x=Submitted", want NAME=COLUMN with one of the format's names: submit_time,`},
		"empty": {TraceConfig{Columns: map[string]string{"user": ""}},
			`columns: got "user=", want NAME=COLUMN with the name of a column of the file`},
		"another format": {TraceConfig{Columns: slurmishColumns, Format: FormatSWF}, `format: got "swf", want auto or csv`},
		"not in file": {TraceConfig{Columns: map[string]string{"submit_time": "Sbmitted"}},
			`jobs.csv:1: columns: submit_time=Sbmitted names no column of the file, which has Job, Submitted, Elapsed, GPUs, Owner; did you mean "Submitted"?`},
		"delimiter": {TraceConfig{Delimiter: "dash"},
			`delimiter: got "dash", want comma, semicolon, tab, bar or the character itself`},
		"of a log": {TraceConfig{Delimiter: "tab", File: log},
			`delimiter: got "tab", want nothing: the file is of format swf`},
		"with a format": {TraceConfig{Delimiter: "tab", Format: "philly"},
			`delimiter: got "tab", want nothing with format philly`},
	} {
		if c.cfg.File == "" {
			c.cfg.File = path
		}
		if c.cfg.Format == "" {
			c.cfg.Format = FormatAuto
		}
		c.cfg.Synth = DefaultTraceConfig().Synth
		_, _, err := LoadTrace(c.cfg)
		if _, ok := errors.AsType[*fault.Mistake](err); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}

// What a stranger may see of a header that a file has: nothing.
func TestFaultsOfHeadersAreNotQuoted(t *testing.T) {
	for _, text := range []string{"Secret,duration,num_gpu\n", "Secret,b\n", "JobID|State|Secret\n"} {
		cfg := DefaultTraceConfig()
		cfg.File = file(t, "x.csv", text)
		_, _, err := LoadTrace(cfg)
		if err == nil || !strings.Contains(err.Error(), "Secret") ||
			strings.Contains(Unquoted(err, "x.csv").Error(), "Secret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A client learns which column of a documented name is at fault, and not what is in it.
func TestFaultsOfSlurmsColumnsAreNamed(t *testing.T) {
	cfg := DefaultTraceConfig()
	cfg.File = file(t, "x.txt", "JobID|Submit|Elapsed|AllocTRES\n7|Secret|00:00:01|\n")
	_, _, err := LoadTrace(cfg)
	if got := Unquoted(err, "x.txt").Error(); !strings.HasSuffix(got,
		"x.txt:2: Submit: the value is not one that the format allows") {
		t.Error(got)
	}
}

// The jobs of Slurm's accounting are equal after a conversion to the native format.
func TestSacctToNativeGivesEqualJobs(t *testing.T) {
	for _, c := range rows {
		if c.format != formatSacct {
			continue
		}
		cfg := DefaultTraceConfig()
		cfg.File = file(t, "sacct.txt", c.text)
		jobs, _, err := LoadTrace(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if _, err := csv.Write(&out, &traces.Slice{Jobs: jobs}); err != nil {
			t.Fatal(err)
		}
		cfg.File = file(t, "jobs.csv", out.String())
		again, info, err := LoadTrace(cfg)
		for i := range jobs { // what is written has no recorded starts and nodes
			jobs[i].Started, jobs[i].Waited, jobs[i].Nodes, jobs[i].Hosts = false, 0, 0, ""
		}
		if err != nil || info.Format != FormatCSV || !reflect.DeepEqual(again, jobs) || len(jobs) == 0 {
			t.Errorf("%v\n%+v\n%+v", err, jobs, again)
		}
	}
}
