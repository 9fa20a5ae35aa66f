package workload

import (
	"context"
	"slices"
	"strings"
	"testing"

	"clustergym/traces"
)

// told reads a trace, all of it or its first job, and returns its jobs, Info and what was told.
func told(t *testing.T, text string, change func(*TraceConfig)) (jobs []traces.Job, i Info, notes []string) {
	t.Helper()
	cfg := DefaultTraceConfig()
	cfg.File = file(t, "x.csv", text)
	if change != nil {
		change(&cfg)
	}
	tr,
		err := OpenTrace(WithNotes(context.Background(),
		func(n string) { notes = append(notes, strings.TrimPrefix(n, "trace "+cfg.File+": ")) }), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if jobs, err = traces.ReadAll(tr); err != nil {
		t.Fatal(err)
	}
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	return jobs, tr.Info(), notes
}

func TestNotesAreToldOnceAndStandInTheDescription(t *testing.T) {
	const text = "submit_time,duration,num_gpu,worker_num\n0,1,1,16\n1,1,1,94\n"
	for name, change := range map[string]func(*TraceConfig){"all": nil,
		"the first job": func(c *TraceConfig) { c.Jobs = 1 }, "sorted": func(c *TraceConfig) { c.Sort = true }} {
		_, i, notes := told(t, text, change)
		if len(notes) != 1 || !strings.HasPrefix(notes[0], "column worker_num is not used") || !slices.Equal(i.Notes, notes) {
			t.Errorf("%s: %q, %q", name, notes, i.Notes)
		}
	}
	jobs, i, notes := told(t, text, func(c *TraceConfig) { c.Columns = map[string]string{"workers": "worker_num"} })
	if notes != nil || i.Notes != nil || jobs[0].GPUs != 16 || jobs[1].GPUs != 94 {
		t.Errorf("%q, %+v", notes, jobs)
	}
	if _, _, err := LoadTraceContext(context.Background(),
		TraceConfig{File: file(t, "y.csv", text), Format: FormatAuto, Synth: DefaultTraceConfig().Synth}); err != nil {
		t.Error(err)
	}
}

// Kalos' column of durations contains the queue, that of Helios does not.
func TestRunTimesOfHeliosAndKalos(t *testing.T) {
	const kalos = "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,end_time,fail_time,stop_time,duration,queue,gpu_time\n" +
		"a,u1,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,2023-05-17 11:01:16+00:00,,,18,10.0,1152.0\n" +
		"b,u1,8,64,960,1000,100.0,Pretrain,CANCELLED,2023-05-17 11:28:42+00:00,2023-05-17 11:28:54+00:00,2023-05-17 11:30:04+00:00,,,82,12.0,5248.0\n" +
		"c,u1,1,8,8,100,100.0,Other,CANCELLED,2023-05-17 11:28:43+00:00,,,,,82,82,0\n"
	jobs, i, notes := told(t, kalos, nil)
	if i.Format != "helios" || len(jobs) != 2 || jobs[0].Work.Seconds() != 8 || jobs[1].Work.Seconds() != 70 ||
		jobs[1].Name != "Pretrain" || jobs[0].GPUs != 64 ||
		jobs[0].CPUMilli != 960_000 || jobs[0].Status != traces.Failed || i.Dropped != 1 || notes != nil {
		t.Errorf("%s, %q\n%+v", i.Format, notes, jobs)
	}
	// As a table of the native format the same, with a note, as it is needed for the columns alone.
	jobs, i,
		notes = told(t, kalos,
		func(c *TraceConfig) { c.Columns = map[string]string{"num_gpu": "gpu_num", "status": "state"} })
	if i.Format != FormatCSV || jobs[0].Work.Seconds() != 8 || jobs[1].Work.Seconds() != 70 || len(notes) != 2 ||
		!strings.HasPrefix(notes[0], "duration contains the wait in 2 rows (first in line 2)") {
		t.Errorf("%s, %q\n%+v", i.Format, notes, jobs)
	}
	const helios = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n" +
		"71,uA,vcA,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:11,2020-06-10 04:55:09,36838,10\n"
	if jobs, i, notes = told(t, helios, nil); i.Format != "helios" || jobs[0].Work.Seconds() != 36838 ||
		jobs[0].VC != "vcA" || jobs[0].Name != "" || notes != nil {
		t.Errorf("%s, %q\n%+v", i.Format, notes, jobs)
	}
}
