//go:build unix

package pages

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"clustergym/lab/rundir"
)

// ends fails the test if f has not ended after a time that only something that waits for ever takes.
func ends(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%s: it has not ended after a minute", what)
	}
}

// odd makes name something that is no ordinary file, of each kind in turn.
var odd = map[string]func(t *testing.T, name string){
	"pipe": func(t *testing.T, name string) {
		if err := syscall.Mkfifo(name, 0o600); err != nil {
			t.Fatal(err)
		}
	},
	"socket": func(t *testing.T, name string) {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
		if err != nil {
			t.Skip("no socket of so long a name:", err)
		}
		t.Cleanup(func() { _ = l.Close() })
	},
	"endless": func(t *testing.T, name string) {
		if err := os.Symlink("/dev/zero", name); err != nil {
			t.Fatal(err)
		}
	},
	"huge": func(t *testing.T, name string) {
		f, err := os.Create(name)
		if err == nil {
			err = f.Truncate(1 << 40)
		}
		if err != nil || f.Close() != nil {
			t.Skip("no large files here:", err)
		}
	},
}

// Whatever stands where pages look, they come, and show what is sound.
func TestNothingInAFolderHoldsUpThePages(t *testing.T) {
	for kind, build := range odd {
		dir, err := os.MkdirTemp("", "p") // a short path: sockets have a limit
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		sound := written(t, dir, "sound", 2)
		for _, name := range []string{
			"c/config.yaml", "p/progress.jsonl", "b/best.json", "e/eval/test.json", "k/checkpoints", "s/sweep.yaml",
			"s2/trials.jsonl", "s2/base.yaml", "x/plan.json",
			"log.jsonl", "config.yaml", "w/weights.yaml", "d/config.yaml/config.yaml",
		} {
			file := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(name, "p/") || strings.HasPrefix(name, "b/") || strings.HasPrefix(name, "e/") ||
				strings.HasPrefix(name, "k/") {
				b, err := os.ReadFile(filepath.Join(sound, rundir.ConfigFile))
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, name[:1], rundir.ConfigFile), b, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			build(t, file)
		}
		ends(t, kind, func() {
			s := serve(t, Options{Paths: []string{dir}})
			code, list, _ := get(t, s.URL+"/api/list")
			if code != http.StatusOK || !strings.Contains(list, idOf(sound)) {
				t.Errorf("%s: the list has %d %s", kind, code, list)
			}
			for _, path := range []string{"/metrics", "/api/run?id=" + idOf(sound), "/api/curves?id=" + idOf(sound)} {
				if code, text, _ := get(t, s.URL+path); code != http.StatusOK {
					t.Errorf("%s: %s has %d %s", kind, path, code, text)
				}
			}
			for _, name := range []string{"c", "p", "b", "e", "k", "s", "s2", "x"} {
				for _, api := range []string{"run", "curves", "sweep", "experiment", "replay", "standings"} {
					_, _, _ = get(t, s.URL+"/api/"+api+"?id="+idOf(filepath.Join(dir, name)))
				}
			}
		})
		ends(t, kind, func() { _ = Check([]string{filepath.Join(dir, "log.jsonl")}) })
	}
}

// A link that leads out of the folder that was named is not followed: the page says so in place of what is there.
func TestLinksDoNotLeadOutOfTheFolder(t *testing.T) {
	away := t.TempDir()
	other := written(t, away, "other", 2)
	if err := os.WriteFile(filepath.Join(other, "test.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]string{rundir.ConfigFile: rundir.ConfigFile, rundir.ProgressFile: rundir.ProgressFile,
		rundir.Checkpoints: "", "eval": ""} {
		dir := t.TempDir()
		near := written(t, dir, "near", 2)
		run := written(t, dir, "a", 2)
		target := filepath.Join(run, name)
		_ = os.RemoveAll(target)
		if err := os.Symlink(filepath.Join(other, at), target); err != nil {
			t.Fatal(err)
		}
		s := serve(t, Options{Paths: []string{dir}})
		code, list, _ := get(t, s.URL+"/api/list")
		if code != http.StatusOK || !strings.Contains(list, idOf(near)) || !strings.Contains(list, "leads out of") {
			t.Errorf("%s: the list has %d %s", name, code, list)
		}
		if code, text, _ := get(t, s.URL+"/api/curves?id="+idOf(run)); code == http.StatusOK {
			t.Errorf("%s: curves of what is elsewhere: %s", name, text)
		}
		// A link within the folder is an ordinary one.
		_ = os.Remove(target)
		if err := os.Symlink(filepath.Join(near, name), target); err != nil {
			t.Fatal(err)
		}
		s = serve(t, Options{Paths: []string{dir}})
		if _, list, _ := get(t, s.URL+"/api/list"); strings.Contains(list, "leads out of") {
			t.Errorf("%s: a link within the folder: %s", name, list)
		}
	}
	// The folder itself may be a link: its user has named it.
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(away, link); err != nil {
		t.Fatal(err)
	}
	s := serve(t, Options{Paths: []string{link}})
	if _, list, _ := get(t, s.URL+"/api/list"); strings.Contains(list, "leads out of") ||
		!strings.Contains(list, `"name":"other"`) {
		t.Errorf("a folder by its link: %s", list)
	}
}
