package catalog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// content returns n bytes in which no two pieces are equal.
func content(n int) []byte {
	var b []byte
	for i := 0; len(b) < n; i++ {
		b = fmt.Appendf(b, "job %d\n", i)
	}
	return b[:n]
}

func hexHash(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

var source = &Source{Name: "s", Repository: "someone/data", Commit: strings.Repeat("ab", 20), Licence: "none stated",
	Cite: "a paper"}

// entryOf returns an entry of one file with content b.
func entryOf(b []byte) *Entry {
	return &Entry{Name: "jobs", What: "jobs", Kind: KindTrace, Format: "csv", Source: "s",
		Files: []File{{Path: "a folder/jobs.csv", To: "jobs.csv", Size: int64(len(b)), SHA256: hexHash(b)}}}
}

// server serves with handle, whose first argument is the number of earlier requests.
func server(t *testing.T, handle func(n int, w http.ResponseWriter, r *http.Request)) (url string,
	requests *atomic.Int64) {
	t.Helper()
	requests = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handle(int(requests.Add(1))-1, w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, requests
}

// getter returns a Getter for a new folder that does not wait between attempts.
func getter(t *testing.T, mirror string) (g *Getter, dir string, notes *[]string) {
	t.Helper()
	notes = new([]string)
	dir = filepath.Join(t.TempDir(), "cache")
	g = NewGetter(dir, Options{Mirror: mirror, Note: func(s string) { *notes = append(*notes, s) }})
	g.pause = time.Millisecond
	g.stall = 5 * time.Second
	return g, dir, notes
}

// whole checks that dir holds e with content b and no other files.
func whole(t *testing.T, dir string, e *Entry, b []byte) {
	t.Helper()
	got, err := os.ReadFile(e.Path(dir))
	if err != nil || !bytes.Equal(got, b) {
		t.Errorf("%d bytes (%v), want the %d that were served", len(got), err, len(b))
	}
	only(t, dir, filepath.Base(e.Path(dir)))
}

// only checks that a folder holds these files and no others.
func only(t *testing.T, dir string, names ...string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("the folder holds %q, want %q", got, names)
	}
}

func partName(e *Entry) string { return "." + e.Files[0].To + "." + e.Files[0].SHA256[:12] + ".part" }

// serve responds like a file server with ranges and an ETag.
func serve(w http.ResponseWriter, r *http.Request, b []byte) {
	w.Header().Set("ETag", `"one"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
}

// cut ends the connection after n bytes of a response that promised all of b from the requested byte on.
func cut(w http.ResponseWriter, r *http.Request, b []byte, n int) {
	from := 0
	if s := r.Header.Get("Range"); s != "" {
		_, _ = fmt.Sscanf(s, "bytes=%d-", &from)
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(b)-1, len(b)))
	}
	w.Header().Set("ETag", `"one"`)
	w.Header().Set("Content-Length", fmt.Sprint(len(b)-from))
	if from > 0 {
		w.WriteHeader(http.StatusPartialContent)
	}
	_, _ = w.Write(b[from : from+n])
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	panic(http.ErrAbortHandler)
}

func TestGetFetchesOnceAndThenLeavesTheNetAlone(t *testing.T) {
	b := content(200_000)
	var path, encoding string
	url, requests := server(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		path, encoding = r.URL.EscapedPath(), r.Header.Get("Accept-Encoding")
		serve(w, r, b)
	})
	g, dir, _ := getter(t, url)
	var last int64
	g.opt.Progress = func(_ *Entry, done, all int64) {
		if done < last || all != int64(len(b)) {
			t.Errorf("progress %d of %d after %d", done, all, last)
		}
		last = done
	}
	e := entryOf(b)
	if fetched, err := g.Get(t.Context(), source, e); err != nil || !fetched {
		t.Fatalf("fetched %v, %v", fetched, err)
	}
	whole(t, dir, e, b)
	if path != "/someone/data/"+source.Commit+"/a%20folder/jobs.csv" || encoding != "identity" || last != int64(len(b)) {
		t.Errorf("asked for %s, packed %q, told of %d bytes", path, encoding, last)
	}
	if fetched, err := g.Get(t.Context(), source, e); err != nil || fetched || requests.Load() != 1 {
		t.Errorf("the second time: fetched %v, %v, %d requests in all; want none", fetched, err, requests.Load())
	}
	// A file that was changed since is not the published file.
	if err := os.WriteFile(e.Path(dir), bytes.ToUpper(b), 0o600); err != nil {
		t.Fatal(err)
	}
	last = 0
	if fetched, err := g.Get(t.Context(), source, e); err != nil || !fetched {
		t.Errorf("a changed file: fetched %v, %v", fetched, err)
	}
	whole(t, dir, e, b)
}

func TestAFolderOfFilesIsFetchedFileByFile(t *testing.T) {
	one, two := content(5000), content(3000)
	url, requests := server(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/two.csv") {
			serve(w, r, two)
		} else {
			serve(w, r, one)
		}
	})
	g, dir, _ := getter(t, url)
	e := entryOf(one)
	e.Folder = true
	e.Files[0].To = "A100/one.csv"
	e.Files = append(e.Files, File{Path: "two.csv", To: "T4/two.csv", Size: 3000, SHA256: hexHash(two)})
	for round, want := range []int64{2, 2, 3} {
		if round == 2 { // only the missing file
			if err := os.Remove(filepath.Join(dir, "jobs", "A100", "one.csv")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := g.Get(t.Context(), source, e); err != nil || requests.Load() != want {
			t.Fatalf("round %d: %v after %d requests, want %d", round, err, requests.Load(), want)
		}
	}
	for name, want := range map[string][]byte{"A100/one.csv": one, "T4/two.csv": two} {
		if got, err := os.ReadFile(filepath.Join(e.Path(dir), filepath.FromSlash(name))); err != nil ||
			!bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

func TestAnInterruptKeepsWhatHasArrived(t *testing.T) {
	b := content(80_000)
	url, _ := server(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n > 0 {
			if s := r.Header.Get("Range"); s != "bytes=30000-" {
				t.Errorf("asked for %q", s)
			}
			serve(w, r, b)
			return
		}
		w.Header().Set("ETag", `"one"`)
		w.Header().Set("Content-Length", "80000")
		_, _ = w.Write(b[:30_000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	g, dir, _ := getter(t, url)
	e := entryOf(b)
	ctx, cancel := context.WithCancel(t.Context())
	g.opt.Progress = func(_ *Entry, done, _ int64) {
		if done == 30_000 {
			cancel()
		}
	}
	_, err := g.Get(ctx, source, e)
	stop, ok := errors.AsType[*StoppedError](err)
	if !ok || stop.Done != 30_000 || stop.Size != 80_000 || !errors.Is(err, context.Canceled) ||
		err.Error() != "30.0 kB of 80.0 kB of jobs have arrived and are kept; the same command goes on from there" {
		t.Fatal(err)
	}
	only(t, dir, partName(e), partName(e)+".etag")
	if _, err := g.Get(t.Context(), source, e); err != nil {
		t.Fatal(err)
	}
	whole(t, dir, e, b)
}

func TestAnInterruptEndsAPauseAndAWait(t *testing.T) {
	b := content(100)
	url,
		_ := server(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	g, dir, _ := getter(t, url)
	g.pause = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	g.opt.Note = func(string) { cancel() }
	if _, err := g.Get(ctx, source, entryOf(b)); !errors.Is(err, context.Canceled) {
		t.Errorf("in a pause: %v", err)
	}
	only(t, dir)
	if runtime.GOOS == "windows" {
		return // this system has no locks
	}
	unlock, err := tryLock(filepath.Join(dir, ".jobs.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel = context.WithCancel(t.Context())
	g.opt.Note = func(s string) {
		if s != "another process is fetching jobs; waiting for it" {
			t.Errorf("said %q", s)
		}
		cancel()
	}
	if _, err := g.Get(ctx, source, entryOf(b)); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for another: %v", err)
	}
}

func TestSeveralAtOnceFetchOnce(t *testing.T) {
	b := content(300_000)
	url, requests := server(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		time.Sleep(20 * time.Millisecond)
		serve(w, r, b)
	})
	dir, e := t.TempDir(), entryOf(b)
	var wg sync.WaitGroup
	var fetched atomic.Int64
	for range 8 {
		wg.Go(func() {
			did, err := NewGetter(dir, Options{Mirror: url}).Get(t.Context(), source, e)
			if err != nil {
				t.Error(err)
			}
			if did {
				fetched.Add(1)
			}
		})
	}
	wg.Wait()
	if fetched.Load() != 1 || requests.Load() != 1 {
		t.Errorf("%d fetched it with %d requests, want one with one", fetched.Load(), requests.Load())
	}
	whole(t, dir, e, b)
}

func TestAFullDiskKeepsWhatFits(t *testing.T) {
	b := content(100_000)
	url, _ := server(t, func(_ int, w http.ResponseWriter, r *http.Request) { serve(w, r, b) })
	g, dir, _ := getter(t, url)
	e := entryOf(b)
	room := 40_000
	g.write = func(p *part) {
		p.write = func(d []byte) (int, error) {
			if len(d) <= room {
				room -= len(d)
				return p.file.Write(d)
			}
			n, err := p.file.Write(d[:room])
			room = 0
			return n, errors.Join(err, &fs.PathError{Op: "write", Path: p.path, Err: syscall.ENOSPC})
		}
	}
	_, err := g.Get(t.Context(), source, e)
	if err == nil || !strings.Contains(err.Error(), "there is no room on the disk for ") ||
		!strings.HasSuffix(err.Error(), "40.0 kB have arrived and are kept") {
		t.Fatal(err)
	}
	only(t, dir, partName(e), partName(e)+".etag")
	g.write = nil
	if _, err := g.Get(t.Context(), source, e); err != nil {
		t.Fatal(err)
	}
	whole(t, dir, e, b)
}

func TestAFolderThatCannotBeUsed(t *testing.T) {
	b := content(10)
	url, requests := server(t, func(_ int, w http.ResponseWriter, r *http.Request) { serve(w, r, b) })
	e := entryOf(b)
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	taken := t.TempDir()
	if err := os.Mkdir(filepath.Join(taken, "jobs.csv"), 0o700); err != nil {
		t.Fatal(err)
	}
	device := t.TempDir()
	if err := os.Symlink(os.DevNull, filepath.Join(device, partName(e))); err != nil {
		t.Fatal(err)
	}
	locked := t.TempDir()
	if err := os.Chmod(locked, 0o500); err != nil { //nolint:gosec // a folder
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		blocked: "not a directory", filepath.Join(blocked,
			"below"): "not a directory", taken: "jobs.csv in it is a folder, a file is wanted",
		device: partName(e) + " in it is no ordinary file", locked: "permission denied",
	} {
		if dir == locked && os.Geteuid() == 0 {
			continue // root may write everywhere
		}
		_, err := NewGetter(dir, Options{Mirror: url}).Get(t.Context(), source, e)
		if f, ok := errors.AsType[*FolderError](err); !ok || !strings.HasSuffix(f.Error(), want) {
			t.Errorf("%s: got %v, want %s", dir, err, want)
		}
	}
	if requests.Load() != 0 {
		t.Errorf("%d requests", requests.Load())
	}
}

func TestCopiesAreWholeAndOverwriteNothing(t *testing.T) {
	b := content(1000)
	e := entryOf(b)
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "new", "data")
	if err := os.WriteFile(e.Path(from), b, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if path, err := Copy(e, from, to); err != nil || path != filepath.Join(to, "jobs.csv") {
			t.Fatal(path, err)
		}
		whole(t, to, e, b)
	}
	if err := os.WriteFile(e.Path(to), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Copy(e, from, to); err == nil || !strings.HasSuffix(err.Error(), "is there already and is another file") {
		t.Errorf("over another file: %v", err)
	}
	if got, err := os.ReadFile(e.Path(to)); string(got) != "mine" {
		t.Errorf("it holds %q (%v)", got, err)
	}
}
