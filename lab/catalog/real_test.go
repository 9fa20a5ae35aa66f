package catalog_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clustergym/internal/raced"
	"clustergym/lab/catalog"
	"clustergym/lab/workload"
	"clustergym/traces"
	"clustergym/traces/inventory"
	"clustergym/traces/profile"
)

func TestEveryFormatHasAReader(t *testing.T) {
	for _, e := range catalog.Public().Entries {
		known := map[string][]string{
			catalog.KindTrace: workload.FormatNames(), catalog.KindInventory: {"inventory"}, catalog.KindProfiles: {"profile"},
			catalog.KindSample: {"tiresias"}, catalog.KindSeries: {""},
		}[e.Kind]
		if !slices.Contains(known, e.Format) || e.Format == workload.FormatAuto {
			t.Errorf("%s: format %q of kind %s has no reader", e.Name, e.Format, e.Kind)
		}
	}
}

// copies finds local files whose hash equals the published one. A file that is compressed here but not at its publisher
// is decompressed.
func copies(t *testing.T) map[string]string {
	t.Helper()
	root := filepath.Join("..", "..", "..", "shared", "traces")
	if _, err := os.Stat(root); err != nil {
		t.Skip("real traces not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	at := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		var r io.Reader = f
		if strings.HasSuffix(path, ".gz") {
			if r, err = gzip.NewReader(f); err != nil {
				return err
			}
		}
		h := sha256.New()
		if _, err := io.Copy(h, r); err != nil {
			return err
		}
		at[hex.EncodeToString(h.Sum(nil))] = path
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// Every entry with an unchanged local copy is what its kind and format say.
func TestEntriesAreReadByTheirReaders(t *testing.T) {
	raced.Alone(t)
	at := copies(t)
	c := catalog.Public()
	find := func(e *catalog.Entry) string {
		path := at[e.Files[0].SHA256]
		if e.Folder && path != "" {
			for range strings.Count(e.Files[0].To, "/") + 1 {
				path = filepath.Dir(path)
			}
		}
		return path
	}
	seen := map[string]int{}
	for i := range c.Entries {
		e := &c.Entries[i]
		for _, f := range e.Files { // all files of a folder, or none
			if e.Folder && at[f.SHA256] == "" {
				t.Errorf("%s: %s is not at hand, unlike its neighbours", e.Name, f.To)
			}
		}
		path := find(e)
		if path == "" {
			continue
		}
		seen[e.Kind]++
		switch e.Kind {
		case catalog.KindTrace:
			cfg := workload.DefaultTraceConfig()
			cfg.File = path
			if e.Profiles != "" {
				p, err := c.Find(e.Profiles)
				if err != nil {
					t.Fatal(err)
				}
				cfg.Profiles, cfg.Reference = find(p), e.Reference
			}
			r, err := workload.OpenTrace(t.Context(), cfg)
			if err != nil {
				t.Errorf("%s: %v", e.Name, err)
				continue
			}
			if got := r.Info().Format; got != e.Format {
				t.Errorf("%s: format %s, want %s", e.Name, got, e.Format)
			}
			s, err := traces.Summarize(r)
			if err != nil || s.Jobs == 0 || s.Work.Max == 0 {
				t.Errorf("%s: %d jobs, the longest of %v (%v)", e.Name, s.Jobs, s.Work.Max, err)
			}
			_ = r.Close()
		case catalog.KindInventory:
			f, err := traces.OpenFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if inv, err := inventory.Read(f, path); err != nil || len(inv.Nodes)+len(inv.VCs) == 0 {
				t.Errorf("%s: %d nodes, %v", e.Name, len(inv.Nodes), err)
			}
			_ = f.Close()
		case catalog.KindProfiles:
			if p, err := profile.LoadIn(t.Context(), nil, path); err != nil || len(p.Models()) == 0 {
				t.Errorf("%s: %v", e.Name, err)
			}
		}
	}
	for kind, least := range map[string]int{catalog.KindTrace: 40, catalog.KindInventory: 9, catalog.KindProfiles: 6,
		catalog.KindSample: 1, catalog.KindSeries: 8} {
		if seen[kind] < least {
			t.Errorf("%d of kind %s are at hand, want %d", seen[kind], kind, least)
		}
	}
}
