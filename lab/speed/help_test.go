package speed

import (
	"os"
	"path/filepath"
	"testing"
)

// small is a trace of three jobs.
const small = "job_id,submit_time,duration,num_gpu\nA,1000,100,2\nB,1000,10,1\nC,1000,10,1\n"

// file writes a file into the test's folder and returns its path.
func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
