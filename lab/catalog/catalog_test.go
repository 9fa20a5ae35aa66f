package catalog

import (
	"bytes"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/configs"
)

func TestThePublicCatalogIsValid(t *testing.T) {
	c := Public() // panics if it is faulty
	used := map[string]bool{}
	for i := range c.Entries {
		e := &c.Entries[i]
		s := c.SourceOf(e)
		used[s.Name] = true
		for j := range e.Files {
			u, err := url.Parse(s.URL(Publisher, &e.Files[j]))
			if err != nil || u.Scheme != "https" || u.Host == "" ||
				!strings.HasSuffix(u.Path, "/"+s.Repository+"/"+s.Commit+"/"+e.Files[j].Path) &&
					!strings.HasPrefix(u.Path, "/"+s.Repository+"/") {
				t.Errorf("%s: address %v (%v)", e.Name, u, err)
			}
			if !e.Folder && !strings.HasPrefix(e.Files[j].To, e.Name+".") {
				t.Errorf("%s is kept as %s, want a name that tells", e.Name, e.Files[j].To)
			}
		}
		if len(e.What) > 130 {
			t.Errorf("%s: %d letters say what it is, want one line", e.Name, len(e.What))
		}
		if found, err := c.Find(e.Name); found != e || err != nil {
			t.Errorf("%s is not found: %v", e.Name, err)
		}
		if nc := strings.Contains(strings.ToLower(s.Licence), "non-commercial"); nc != s.NonCommercial {
			t.Errorf("%s: licence %q, marked non-commercial: %v", e.Name, s.Licence, s.NonCommercial)
		}
	}
	for _, s := range c.Sources {
		if !used[s.Name] {
			t.Errorf("nothing comes from source %s", s.Name)
		}
	}
}

func TestAFaultyCatalogIsRefusedWithAllFaults(t *testing.T) {
	const good = `sources:
  - {name: s, repository: a/b, commit: 0123456789012345678901234567890123456789, licence: MIT, cite: a paper}
entries:
  - name: one
    what: jobs
    kind: trace
    format: csv
    source: s
    files:
      - {path: d/jobs.csv, to: one.csv, size: 3, sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}
`
	read := func(text string) error { return configs.DecodeBytes("c.yaml", []byte(text), &Catalog{}) }
	if err := read(good); err != nil {
		t.Fatal(err)
	}
	second := good[strings.Index(good, "  - name: one"):]
	for _, c := range []struct{ old, changed, want string }{
		{"name: s,", "name: ../s,", "sources[0].name: "},
		{"repository: a/b", "repository: a/b/c", "sources[0].repository: "},
		{"commit: 0", "commit: x", "sources[0].commit: "},
		{"licence: MIT", `licence: ""`, "sources[0].licence: "},
		{"cite: a paper", `cite: ""`, "sources[0].cite: "},
		{"name: one", "name: ../../one", "entries[0].name: "},
		{"name: one", "name: One", "entries[0].name: "},
		{"what: jobs", `what: ""`, "entries[0].what: "},
		{"kind: trace", "kind: tracks", "entries[0].kind: "},
		{"kind: trace", "kind: series", "entries[0].format: "},
		{"source: s", "source: t", "entries[0].source: "},
		{"path: d/jobs.csv", "path: /etc/passwd", "entries[0].files[0].path: "},
		{"path: d/jobs.csv", "path: d/../../jobs.csv", "entries[0].files[0].path: "},
		{"to: one.csv", "to: ../one.csv", "entries[0].files[0].to: "},
		{"to: one.csv", "to: /one.csv", "entries[0].files[0].to: "},
		{"to: one.csv", "to: .one.csv", "entries[0].files[0].to: "},
		{"to: one.csv", "to: d/one.csv", "entries[0].files[0].to: "},
		{"source: s", "source: s\n    profiles: one\n    reference: v100", "entries[0].profiles: "},
		{"source: s", "source: s\n    profiles: none\n    reference: v100", "entries[0].profiles: "},
		{"source: s", "source: s\n    reference: v100", "entries[0].reference: "},
		{"size: 3", "size: 0", "entries[0].files[0].size: "},
		{"sha256: 0", "sha256: ", "entries[0].files[0].sha256: "},
		{"sha256: 0", "sha256: A", "entries[0].files[0].sha256: "},
		{"format: csv", "format: csv\n    colour: red", "colour: unknown key"},
		{"    files:\n", "    files: []\n    other:\n", "entries[0].files: "},
		{second, second + second, "entries[1].name: "},
		{second, second + second, "entries[1].files[0].to: "},
	} {
		if !strings.Contains(good, c.old) {
			t.Fatalf("%q is not in the text", c.old)
		}
		if err := read(strings.Replace(good, c.old, c.changed, 1)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.changed, err, c.want)
		}
	}
}

func TestHostileAndMistakenNamesAreUnknown(t *testing.T) {
	t.Setenv(CacheVar, t.TempDir())
	for _, name := range []string{"", ".", "..", "../../etc/passwd", "/etc/passwd", "philly-jobs/../x", "philly-jobs\x00",
		"PHILLY-JOBS", "get:get:philly-jobs", `..\..\x`} {
		if _, err := Path(name); err == nil || !strings.HasPrefix(err.Error(), "public trace ") {
			t.Errorf("%q: %v", name, err)
		} else if _, ok := errors.AsType[*UnknownError](err); !ok || strings.ContainsAny(err.Error(), "\x00\n") {
			t.Errorf("%q: %q", name, err)
		}
	}
	if _, err := Public().Find("philly-job"); err == nil ||
		err.Error() != `public trace "philly-job" is unknown; did you mean philly-jobs?` {
		t.Error(err)
	}
	if _, err := Public().Find("xyzzy"); err == nil ||
		err.Error() != `public trace "xyzzy" is unknown; gymctl trace get --list shows all` {
		t.Error(err)
	}
}

func TestPathFindsWhatWasFetched(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	t.Setenv(CacheVar, dir)
	for _, name := range []string{"tiresias-n32g4", Prefix + "tiresias-n32g4"} {
		_, err := Path(name)
		if m, ok := errors.AsType[*MissingError](err); !ok || m.Path != filepath.Join(dir, "tiresias-n32g4.csv") ||
			err.Error() != "public trace tiresias-n32g4 is not at hand ("+m.Path+
				"); gymctl trace get tiresias-n32g4 fetches it" {
			t.Errorf("%s: %v", name, err)
		}
	}
	e, err := Public().Find("tiresias-n32g4")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		size int64
		here bool
	}{{e.Files[0].Size - 1, false}, {e.Files[0].Size, true}} {
		if err := os.WriteFile(e.Path(dir), bytes.Repeat([]byte("x"), int(c.size)), 0o600); err != nil {
			t.Fatal(err)
		}
		if path, err := Path(Prefix + e.Name); (err == nil) != c.here || c.here && path != e.Path(dir) {
			t.Errorf("%d bytes: %q, %v", c.size, path, err)
		}
	}
	// A cache that is not a folder is an error, unlike an empty cache.
	t.Setenv(CacheVar, e.Path(dir))
	if _, err := Path(e.Name); err == nil || !strings.HasSuffix(err.Error(), "cannot be used: not a directory") {
		t.Error(err)
	}
}

func TestTheCacheIsTheUsersUnlessTheEnvironmentSays(t *testing.T) {
	t.Setenv(CacheVar, "")
	t.Setenv("XDG_CACHE_HOME", "/x/cache")
	user, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if dir, err := CacheDir(); err != nil || dir != filepath.Join(user, "clustergym", "traces") {
		t.Errorf("%s, %v", dir, err)
	}
	t.Setenv(CacheVar, "/y")
	if dir, err := CacheDir(); err != nil || dir != "/y" {
		t.Errorf("%s, %v", dir, err)
	}
}

func TestSizesForPeople(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1: "1 byte", 999: "999 bytes", 1000: "1.0 kB", 3444496: "3.4 MB"} {
		if got := FormatSize(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
