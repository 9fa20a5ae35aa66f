package envs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"clustergym/lab/workload"
)

// Environments of version 1 read jobs to the letter, as when they were made; others know types in all letters, and that
// GPUs without a type are of any.
func TestVersionOneReadsJobsToTheLetter(t *testing.T) {
	name := filepath.Join(t.TempDir(), "jobs.csv")
	rows := []byte("job_id,submit_time,duration,num_gpu,gpu_type\n")
	for i := range 4000 {
		kind := ""
		if i%2 > 0 {
			kind = "A100"
		}
		rows = append(rows, fmt.Appendf(nil, "j%d,%d,60,1,%s\n", i, i, kind)...)
	}
	if err := os.WriteFile(name, rows, 0o600); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]int{"JobSelect-v1": 2000, "JobSelect-v2": 0, "PolicyMix-v1": 2000, "GPUPick-v2": 0} {
		d, err := Lookup(id)
		if err != nil {
			t.Fatal(err)
		}
		trace := workload.DefaultTraceConfig()
		trace.File = name
		w, err := LoadWorkload(t.Context(), d, d.Args().Settings, "4x8", trace)
		if err != nil {
			t.Fatal(id, err)
		}
		if w.Taken.Left.Never != want {
			t.Errorf("%s leaves out %d jobs, want %d", id, w.Taken.Left.Never, want)
		}
	}
}
