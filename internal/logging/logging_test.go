package logging

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// patience is how long a test waits for what must happen.
const patience = 40 * time.Second

func TestAWriterPassesEverythingInOrder(t *testing.T) {
	var got, want bytes.Buffer
	w := NewWriter(&got)
	for i := range 1000 {
		_, _ = fmt.Fprintln(w, "line", i)
		_, _ = fmt.Fprintln(&want, "line", i)
	}
	if !w.Close(patience) {
		t.Fatal("not everything is written")
	}
	if got.String() != want.String() {
		t.Errorf("got %q", got.String())
	}
}

func TestAWriterNeverBlocks(t *testing.T) {
	r, stuck := io.Pipe() // nobody reads
	w := NewWriter(stuck)
	for range 3 * mostLines {
		if n, err := fmt.Fprintln(w, "a line"); n != 7 || err != nil {
			t.Fatal(n, err)
		}
	}
	if w.Close(time.Millisecond) {
		t.Error("Close says that everything is written")
	}
	// When somebody reads, the lines that were kept come, and the number of the others.
	var b []byte
	go func() {
		<-w.done
		_ = stuck.Close()
	}()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	var kept, dropped int
	for _, l := range lines {
		if l == "a line" {
			kept++
		} else if _, after, ok := strings.Cut(l, "lines="); ok && strings.Contains(l, "level=WARN") {
			var n int
			if _, err := fmt.Sscan(after, &n); err != nil {
				t.Fatal(err)
			}
			dropped += n
		}
	}
	if kept < mostLines || dropped == 0 || kept+dropped != 3*mostLines {
		t.Errorf("%d lines and %d dropped, want %d together", kept, dropped, 3*mostLines)
	}
}

func TestAWriterHoldsABoundedAmount(t *testing.T) {
	r, stuck := io.Pipe()
	w := NewWriter(stuck)
	big := make([]byte, mostBytes/4)
	for range 100 {
		_, _ = w.Write(big)
	}
	w.mu.Lock()
	held := w.bytes
	w.mu.Unlock()
	if held > mostBytes {
		t.Errorf("%d bytes are held", held)
	}
	_ = r.Close() // the writer's errors are no concern of anybody
	if !w.Close(patience) {
		t.Error("it does not end")
	}
}

func TestEveryStringOfALogIsBounded(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(Bounded(slog.NewJSONHandler(&out, nil)))
	long := strings.Repeat("x", 10_000) + "\n"
	log.With("with",
		long).WithGroup("g").Info(long, "s", long, "e", errors.New(long), "any", []string{long}, slog.Group("h", "in", long),
		"n", 7)
	log.Error("panic", "stack", strings.Repeat("main.go:1\n", 10_000))
	lines := strings.Split(out.String(), "\n")
	if len(lines[0]) > 6*250+200 || strings.Contains(lines[0], `\n`) || !strings.Contains(lines[0], `"n":7`) {
		t.Errorf("%d bytes: %s", len(lines[0]), lines[0])
	}
	if n := len(lines[1]); n < mostStack || n > 2*mostStack {
		t.Errorf("the stack has %d bytes", n)
	}
	if log.Enabled(t.Context(), slog.LevelDebug) {
		t.Error("debug is enabled")
	}
}

func TestAThrottleCountsWhatItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		var th Throttle
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() { th.Warn(log, "again", "a", 1) })
		}
		wg.Wait()
		if n := strings.Count(out.String(), "msg=again"); n != throttled {
			t.Errorf("%d lines, want %d", n, throttled)
		}
		time.Sleep(time.Second)
		th.Warn(log, "later")
		if !strings.Contains(out.String(), fmt.Sprintf("msg=later suppressed=%d", 1000-throttled)) {
			t.Errorf("log:\n%s", out.String())
		}
		th.Rest(log, "rest")
		if strings.Contains(out.String(), "rest") {
			t.Error("nothing is left to say")
		}
		for range throttled {
			th.Warn(log, "again")
		}
		th.Rest(log, "rest")
		if !strings.Contains(out.String(), "msg=rest suppressed=1") {
			t.Errorf("log:\n%s", out.String())
		}
	})
}
