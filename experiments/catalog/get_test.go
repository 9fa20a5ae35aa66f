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

// content is n bytes of which no two pieces are alike.
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

var source = &Source{Name: "s", Repository: "someone/data", Commit: strings.Repeat("ab", 20), Licence: "none stated", Cite: "a paper"}

// entryOf is an entry of one file with content b.
func entryOf(b []byte) *Entry {
	return &Entry{Name: "jobs", What: "jobs", Kind: KindTrace, Format: "csv", Source: "s",
		Files: []File{{Path: "a folder/jobs.csv", To: "jobs.csv", Size: int64(len(b)), SHA256: hexHash(b)}}}
}

// server serves with handle, which is told how many requests there were before.
func server(t *testing.T, handle func(n int, w http.ResponseWriter, r *http.Request)) (url string, requests *atomic.Int64) {
	t.Helper()
	requests = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handle(int(requests.Add(1))-1, w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, requests
}

// getter is a Getter for a new folder that loses no time between attempts.
func getter(t *testing.T, mirror string) (g *Getter, dir string, notes *[]string) {
	t.Helper()
	notes = new([]string)
	dir = filepath.Join(t.TempDir(), "cache")
	g = NewGetter(dir, Options{Mirror: mirror, Note: func(s string) { *notes = append(*notes, s) }})
	g.pause = time.Millisecond
	g.stall = 5 * time.Second
	return g, dir, notes
}

// whole checks that dir holds e with content b, and nothing else.
func whole(t *testing.T, dir string, e *Entry, b []byte) {
	t.Helper()
	got, err := os.ReadFile(e.Path(dir))
	if err != nil || !bytes.Equal(got, b) {
		t.Errorf("%d bytes (%v), want the %d that were served", len(got), err, len(b))
	}
	only(t, dir, filepath.Base(e.Path(dir)))
}

// only checks which files a folder holds.
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

// serve answers as a file server does, with ranges and a tag.
func serve(w http.ResponseWriter, r *http.Request, b []byte) {
	w.Header().Set("ETag", `"one"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
}

// cut ends the connection after n bytes of an answer that promised all of b from the byte asked for.
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
	// What somebody has changed since is not the published file.
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
		if round == 2 { // only what is missing
			if err := os.Remove(filepath.Join(dir, "jobs", "A100", "one.csv")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := g.Get(t.Context(), source, e); err != nil || requests.Load() != want {
			t.Fatalf("round %d: %v after %d requests, want %d", round, err, requests.Load(), want)
		}
	}
	for name, want := range map[string][]byte{"A100/one.csv": one, "T4/two.csv": two} {
		if got, err := os.ReadFile(filepath.Join(e.Path(dir), filepath.FromSlash(name))); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

func TestACutConnectionGoesOnWhereItEnded(t *testing.T) {
	b := content(100_000)
	var asked []string
	url, _ := server(t, func(n int, w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Range")+r.Header.Get("If-Range"))
		if n < 12 { // more often than attempts without gain are allowed
			cut(w, r, b, 7001)
		}
		serve(w, r, b)
	})
	g, dir, notes := getter(t, url)
	e := entryOf(b)
	if _, err := g.Get(t.Context(), source, e); err != nil {
		t.Fatal(err)
	}
	whole(t, dir, e, b)
	if len(asked) != 13 || asked[0] != "" || asked[1] != `bytes=7001-"one"` || asked[12] != `bytes=84012-"one"` || len(*notes) != 12 {
		t.Errorf("asked for %q, said %q", asked, *notes)
	}
}

func TestAnotherRunGoesOnWhereOneEnded(t *testing.T) {
	b := content(50_000)
	e := entryOf(b)
	url, _ := server(t, func(n int, w http.ResponseWriter, r *http.Request) {
		switch {
		case n == 0:
			cut(w, r, b, 20_000)
		case n < 5:
			http.Error(w, "later", http.StatusServiceUnavailable)
		default:
			if s := r.Header.Get("Range"); s != "bytes=20000-" {
				t.Errorf("asked for %q", s)
			}
			serve(w, r, b)
		}
	})
	g, dir, _ := getter(t, url)
	_, err := g.Get(t.Context(), source, e)
	if err == nil || !strings.HasSuffix(err.Error(), "the server answers 503 Service Unavailable; given up after 5 attempts, 20.0 kB are kept") {
		t.Fatal(err)
	}
	only(t, dir, partName(e), partName(e)+".etag")
	if _, err := NewGetter(dir, Options{Mirror: url}).Get(t.Context(), source, e); err != nil {
		t.Fatal(err)
	}
	whole(t, dir, e, b)
}

func TestAServerWithoutRangesStartsOver(t *testing.T) {
	b := content(60_000)
	url, requests := server(t, func(n int, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		if n < 2 {
			_, _ = w.Write(b[:20_000+n])
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(b)
	})
	g, dir, _ := getter(t, url)
	e := entryOf(b)
	if _, err := g.Get(t.Context(), source, e); err != nil || requests.Load() != 3 {
		t.Fatalf("%v after %d requests", err, requests.Load())
	}
	whole(t, dir, e, b)
}

func TestAChangedFileIsFetchedAnew(t *testing.T) {
	b, older := content(30_000), bytes.ToUpper(content(30_000))
	for _, c := range []struct {
		name string
		tag  bool
	}{{"the tag tells", true}, {"the hash tells", false}} {
		t.Run(c.name, func(t *testing.T) {
			url, _ := server(t, func(n int, w http.ResponseWriter, r *http.Request) {
				if n == 0 {
					if !c.tag {
						w.Header().Set("ETag", `W/"one"`)
						w.Header().Set("Content-Length", fmt.Sprint(len(b)))
						_, _ = w.Write(older[:9000])
						panic(http.ErrAbortHandler)
					}
					cut(w, r, older, 9000)
				}
				w.Header().Set("ETag", `"two"`)
				http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
			})
			g, dir, notes := getter(t, url)
			e := entryOf(b)
			if _, err := g.Get(t.Context(), source, e); err != nil {
				t.Fatal(err)
			}
			whole(t, dir, e, b)
			if anew := strings.Contains(strings.Join(*notes, "\n"), "fetched anew"); anew == c.tag {
				t.Errorf("said %q", *notes)
			}
		})
	}
}

func TestWhatIsNotThePublishedFileIsRefused(t *testing.T) {
	b := content(4000)
	for _, c := range []struct {
		name     string
		handle   func(w http.ResponseWriter, r *http.Request)
		want     string
		requests int64
	}{
		{"another hash", func(w http.ResponseWriter, r *http.Request) { serve(w, r, bytes.ToUpper(b)) },
			"has the SHA-256 " + hexHash(bytes.ToUpper(b)) + ", want " + hexHash(b) + ": this is not the published file, and it was removed", 1},
		{"too short", func(w http.ResponseWriter, r *http.Request) { serve(w, r, b[:3999]) }, "got a file of 3999 bytes, want 4000", 1},
		{"too long", func(w http.ResponseWriter, r *http.Request) { serve(w, r, append(content(4000), 'x')) }, "got a file of 4001 bytes, want 4000", 1},
		{"too long, untold", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(b)
			w.(http.Flusher).Flush()
			_, _ = w.Write([]byte("x"))
			w.(http.Flusher).Flush()
		}, "", 1},
		{"too short, untold", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(b[:3000])
			w.(http.Flusher).Flush()
		}, "the connection ended after 3.0 kB of 4.0 kB; given up after 5 attempts", 5},
		{"no such file", func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, "the publisher does not have it (404 Not Found)", 1},
		{"forbidden", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, "the server answers 403 Forbidden", 1},
		{"redirected for ever", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, "redirected more than 5 times", 6},
		{"redirected out of https", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://example.invalid/jobs.csv", http.StatusFound)
		}, "http://example.invalid is not followed, only https is", 1},
		{"redirected to a file", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		}, "is not followed", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, requests := server(t, func(_ int, w http.ResponseWriter, r *http.Request) { c.handle(w, r) })
			g, dir, _ := getter(t, url)
			e := entryOf(b)
			_, err := g.Get(t.Context(), source, e)
			if c.want == "" { // what comes after the right bytes is not looked at
				if err != nil {
					t.Fatal(err)
				}
				whole(t, dir, e, b)
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), "public trace jobs: ") || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if requests.Load() != c.requests {
				t.Errorf("%d requests, want %d", requests.Load(), c.requests)
			}
			if c.requests == 1 {
				only(t, dir)
			}
			if _, err := os.Stat(e.Path(dir)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the file is there (%v)", err)
			}
		})
	}
}

func TestAFaultOfTheServerThatPassesIsTriedAgain(t *testing.T) {
	b := content(1000)
	for _, status := range []int{500, 502, 503, 504, 408, 429} {
		url, requests := server(t, func(n int, w http.ResponseWriter, r *http.Request) {
			if n < 3 {
				w.WriteHeader(status)
				return
			}
			serve(w, r, b)
		})
		g, dir, notes := getter(t, url)
		e := entryOf(b)
		if _, err := g.Get(t.Context(), source, e); err != nil || requests.Load() != 4 || len(*notes) != 3 || !strings.Contains((*notes)[2], "next attempt in 4ms") {
			t.Errorf("%d: %v after %d requests, said %q", status, err, requests.Load(), *notes)
		}
		whole(t, dir, e, b)
	}
}

func TestRetryAfterIsKeptWithinReason(t *testing.T) {
	for s, want := range map[string]time.Duration{"": 0, "2": 2 * time.Second, "-1": 0, "soon": 0, "99999999": maxWait} {
		if got := retryAfter(&http.Response{Header: http.Header{"Retry-After": {s}}}); got != want {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}

func TestContentRange(t *testing.T) {
	for s, want := range map[string][3]int64{
		"bytes 5-9/10": {5, 10, 1}, "bytes 0-0/*": {0, -1, 1}, "bytes */10": {}, "": {}, "bytes 5-9": {}, "bytes -5-9/10": {}, "bytes 5-9/x": {}, "items 5-9/10": {},
	} {
		from, total, ok := contentRange(s)
		if ok != (want[2] == 1) || ok && (from != want[0] || total != want[1]) {
			t.Errorf("%q: %d, %d, %v", s, from, total, ok)
		}
	}
}

func TestOtherBytesThanAskedForAreNotMixedIn(t *testing.T) {
	b := content(9000)
	url, _ := server(t, func(n int, w http.ResponseWriter, r *http.Request) {
		switch n {
		case 0:
			cut(w, r, b, 3000)
		case 1: // from another place
			w.Header().Set("Content-Range", "bytes 0-8999/9000")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(b)
		case 2:
			cut(w, r, b, 4000)
		case 3:
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		default:
			if r.Header.Get("Range") != "" {
				t.Error("asked for a part of what was given up")
			}
			serve(w, r, b)
		}
	})
	g, dir, _ := getter(t, url)
	e := entryOf(b)
	if _, err := g.Get(t.Context(), source, e); err != nil {
		t.Fatal(err)
	}
	whole(t, dir, e, b)
}

func TestAServerThatStallsIsGivenUp(t *testing.T) {
	b := content(8000)
	hold := make(chan struct{})
	defer close(hold)
	url, _ := server(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n > 0 {
			serve(w, r, b)
			return
		}
		w.Header().Set("ETag", `"one"`)
		w.Header().Set("Content-Length", "8000")
		_, _ = w.Write(b[:5000])
		w.(http.Flusher).Flush()
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	})
	g, dir, notes := getter(t, url)
	g.stall = 50 * time.Millisecond
	e := entryOf(b)
	if _, err := g.Get(t.Context(), source, e); err != nil || len(*notes) != 1 || !strings.Contains((*notes)[0], "the server sends nothing more") {
		t.Errorf("%v, said %q", err, *notes)
	}
	whole(t, dir, e, b)
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
	url, _ := server(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	g, dir, _ := getter(t, url)
	g.pause = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	g.opt.Note = func(string) { cancel() }
	if _, err := g.Get(ctx, source, entryOf(b)); !errors.Is(err, context.Canceled) {
		t.Errorf("in a pause: %v", err)
	}
	only(t, dir)
	if runtime.GOOS == "windows" {
		return // no locks
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
	if err == nil || !strings.Contains(err.Error(), "there is no room on the disk for ") || !strings.HasSuffix(err.Error(), "40.0 kB have arrived and are kept") {
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
		blocked: "not a directory", filepath.Join(blocked, "below"): "not a directory", taken: "jobs.csv in it is a folder, a file is wanted",
		device: partName(e) + " in it is no ordinary file", locked: "permission denied",
	} {
		if dir == locked && os.Geteuid() == 0 {
			continue // who may do everything is not refused
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

func TestMirrorsAreHTTPSOrOnThisMachine(t *testing.T) {
	for base, good := range map[string]bool{
		"https://mirror.example": true, "https://mirror.example/a/b/": true, "http://127.0.0.1:8080": true, "http://localhost/x": true, "http://[::1]:9": true,
		"http://mirror.example": false, "ftp://mirror.example": false, "file:///data": false, "mirror.example": false, "": false, "https://": false,
		"https://m.example/?q=": false, "https://m.example/#f": false, "http://127.0.0.1.evil.example": false, "://": false,
	} {
		if err := CheckMirror(base); (err == nil) != good {
			t.Errorf("%q: %v", base, err)
		}
	}
	e := entryOf(content(5))
	for _, base := range []string{"http://mirror.example", "file:///etc"} {
		g, _, _ := getter(t, base)
		if _, err := g.Get(t.Context(), source, e); err == nil || !strings.Contains(err.Error(), "is not followed, only https is") {
			t.Errorf("%s: %v", base, err)
		}
	}
}
