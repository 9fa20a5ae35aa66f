package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

func TestACutConnectionGoesOnWhereItEnded(t *testing.T) {
	b := content(100_000)
	var asked []string
	url, _ := server(t, func(n int, w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Range")+r.Header.Get("If-Range"))
		if n < 12 { // more often than attempts without a new byte are allowed
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
	if len(asked) != 13 || asked[0] != "" || asked[1] != `bytes=7001-"one"` || asked[12] != `bytes=84012-"one"` ||
		len(*notes) != 12 {
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
	if err == nil || !strings.HasSuffix(err.Error(),
		"the server answers 503 Service Unavailable; given up after 5 attempts, 20.0 kB are kept") {
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
			"has the SHA-256 " + hexHash(bytes.ToUpper(b)) + ", want " + hexHash(b) +
				": this is not the published file, and it was removed", 1},
		{"too short", func(w http.ResponseWriter, r *http.Request) { serve(w, r, b[:3999]) },
			"got a file of 3999 bytes, want 4000", 1},
		{"too long", func(w http.ResponseWriter, r *http.Request) { serve(w, r, append(content(4000), 'x')) },
			"got a file of 4001 bytes, want 4000", 1},
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
		{"no such file", func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
			"the publisher does not have it (404 Not Found)", 1},
		{"forbidden", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
			"the server answers 403 Forbidden", 1},
		{"redirected for ever", func(w http.ResponseWriter,
			r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		}, "redirected more than 5 times", 6},
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
			if c.want == "" { // bytes after the right ones are ignored
				if err != nil {
					t.Fatal(err)
				}
				whole(t, dir, e, b)
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), "public trace jobs: ") || !strings.Contains(err.Error(), c.want) ||
				strings.Contains(err.Error(), "\n") {
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
		if _, err := g.Get(t.Context(), source, e); err != nil || requests.Load() != 4 || len(*notes) != 3 ||
			!strings.Contains((*notes)[2], "next attempt in 4ms") {
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
		"bytes 5-9/10": {5, 10, 1}, "bytes 0-0/*": {0, -1, 1}, "bytes */10": {}, "": {}, "bytes 5-9": {}, "bytes -5-9/10": {},
		"bytes 5-9/x": {}, "items 5-9/10": {},
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
		case 1: // from another offset
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
	if _, err := g.Get(t.Context(), source, e); err != nil || len(*notes) != 1 ||
		!strings.Contains((*notes)[0], "the server sends nothing more") {
		t.Errorf("%v, said %q", err, *notes)
	}
	whole(t, dir, e, b)
}

func TestMirrorsAreHTTPSOrOnThisMachine(t *testing.T) {
	for base, good := range map[string]bool{
		"https://mirror.example": true, "https://mirror.example/a/b/": true, "http://127.0.0.1:8080": true,
		"http://localhost/x": true, "http://[::1]:9": true,
		"http://mirror.example": false, "ftp://mirror.example": false, "file:///data": false, "mirror.example": false,
		"": false, "https://": false,
		"https://m.example/?q=": false, "https://m.example/#f": false, "http://127.0.0.1.evil.example": false, "://": false,
	} {
		if err := CheckMirror(base); (err == nil) != good {
			t.Errorf("%q: %v", base, err)
		}
	}
	e := entryOf(content(5))
	for _, base := range []string{"http://mirror.example", "file:///etc"} {
		g, _, _ := getter(t, base)
		if _, err := g.Get(t.Context(), source, e); err == nil ||
			!strings.Contains(err.Error(), "is not followed, only https is") {
			t.Errorf("%s: %v", base, err)
		}
	}
}
