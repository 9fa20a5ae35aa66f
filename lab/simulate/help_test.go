package simulate

import (
	"os"
	"path/filepath"
	"testing"
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

// native is a trace of three jobs in the native format.
const native = "job_id,submit_time,duration,num_gpu,estimate\na,0,10,1,20\nb,5,30,2,\nc,9,5,0.5,7\n"
