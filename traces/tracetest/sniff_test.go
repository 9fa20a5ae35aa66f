package tracetest

import (
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clustergym/internal/recorded"
	"clustergym/traces"
	"clustergym/traces/acme"
	"clustergym/traces/chronus"
	"clustergym/traces/dlrm"
	"clustergym/traces/elasticflow"
	"clustergym/traces/gavel"
	"clustergym/traces/inventory"
	"clustergym/traces/muri"
	"clustergym/traces/pai"
	"clustergym/traces/sia"
	"clustergym/traces/tiresias"
)

// below and named tell files of a format by their folders, and by the beginnings of their names.
func below(folders ...string) func(path string) bool {
	return func(path string) bool {
		return slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(path, f+"/") })
	}
}

func named(beginnings ...string) func(path string) bool {
	return func(path string) bool {
		name := path[strings.LastIndexByte(path, '/')+1:]
		return slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(name, b) })
	}
}

func TestEachReaderFindsItsFilesAmongAllRecordedOnes(t *testing.T) {
	root := filepath.Dir(recorded.Path(t, "traces/any"))
	formats := []struct {
		name  string
		sniff func([]byte) bool
		its   func(path string) bool
		files int // of the format, 0 = some
	}{
		{"acme", acme.Sniff, named("kalos_completed_"), 0},
		{"chronus", chronus.Sniff, below("philly-chronus"), 1},
		{"dlrm", dlrm.Sniff, named("disaggregated_DLRM_"), 0},
		{"elasticflow", elasticflow.Sniff, below("philly-elasticflow"), 2},
		{"gavel", gavel.Sniff, below("philly-gavel", "gavel-physical"), 14},
		{"inventory", inventory.Sniff,
			named("openb_node_list_all_node.csv", "openb_node_list_gpu_node.csv", "pai_machine_spec.csv", "node_info_df.csv",
				"topo.csv", "cluster_machine_list.csv", "revised_machine_list.csv", "cluster_spec.csv", "n160g8.csv", "n32g4.csv",
				"venus_vc_config.csv", "philly_vc.csv"), 0},
		{"muri", muri.Sniff, below("philly-muri"), 3},
		{"pai", pai.Sniff, named("hydra_"), 0},
		{"sia", sia.Sniff, below("sia-workloads"), 18},
		{"tiresias", tiresias.Sniff, named("60_job.csv"), 0},
	}
	found := make([]int, len(formats))
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f, err := traces.OpenFile(path)
		if err != nil {
			return err
		}
		defer f.Close()
		head, err := io.ReadAll(io.LimitReader(f, 1<<16))
		if err != nil {
			return err
		}
		path, err = filepath.Rel(root, path)
		path = filepath.ToSlash(path)
		for i, c := range formats {
			got := c.sniff(head)
			if got {
				found[i]++
			}
			if expected := c.its(path); got != expected {
				t.Errorf("%s, %s: %v, expected %v", c.name, path, got, expected)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range formats {
		if found[i] == 0 || c.files > 0 && found[i] != c.files {
			t.Errorf("%s: %d files, expected %d", c.name, found[i], c.files)
		}
	}
}
