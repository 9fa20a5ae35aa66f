package workload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/configs"
)

// A limit stands for the estimates that are missing, in every format, read at once or as a stream; predictors do not
// see it.
func TestALimitStandsForMissingEstimates(t *testing.T) {
	for name, text := range map[string]string{
		"jobs.csv": "submit_time,duration,num_gpu,estimate\n0,10,1,20\n1,10,1,\n2,10,1,0\n",
		"jobs.txt": "JobID|Submit|ElapsedRaw|Timelimit|AllocTRES\n1|1709287200|10|00:00:20|gres/gpu=1\n2|1709287201|10|UNLIMITED|gres/gpu=1\n3|1709287202|10|Partition_Limit|gres/gpu=1\n",
		"jobs.swf": "1 0 0 10 1 -1 -1 1 20 -1 1 1 1 1 1 1 -1 -1\n2 1 0 10 1 -1 -1 1 -1 -1 1 1 1 1 1 1 -1 -1\n3 2 0 10 1 -1 -1 1 0 -1 1 1 1 1 1 1 -1 -1\n",
	} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg := DefaultTraceConfig()
		cfg.File, cfg.Limit = file, 24*time.Hour
		jobs, info, err := LoadTrace(cfg)
		if err != nil || len(jobs) != 3 || info.Limited != 2 || info.Assumed != 0 ||
			!strings.Contains(info.String(), "2 estimates missing, for which trace.limit stands") {
			t.Errorf("%s: %v, %d jobs, %v", name, err, len(jobs), info)
			continue
		}
		for i, j := range jobs {
			if want := []time.Duration{20 * time.Second, 24 * time.Hour, 24 * time.Hour}[i]; j.Estimate != want ||
				j.Assumed != (i > 0) {
				t.Errorf("%s: job %s has %v, assumed %v; want %v", name, j.ID, j.Estimate, j.Assumed, want)
			}
		}
	}
}

// The key is not written where it is not given, so that configurations and their hashes stay what they were.
func TestALimitIsOnlyWrittenWhereItIsGiven(t *testing.T) {
	cfg := DefaultTraceConfig()
	text, err := configs.Encode(&cfg)
	if err != nil || strings.Contains(string(text), "limit") {
		t.Errorf("%v\n%s", err, text)
	}
	cfg.Limit = 24 * time.Hour
	if text, err = configs.Encode(&cfg); err != nil || !strings.Contains(string(text), "limit: 24h") {
		t.Errorf("%v\n%s", err, text)
	}
	cfg.Limit = -1
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), `limit: got -1ns, want a time such as 24h`) {
		t.Error(err)
	}
}
