package server

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"clustergym/bridge/wire"
)

// regions returns the open descriptors of shared memory of this process.
func regions(t *testing.T) (n int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("the descriptors cannot be listed: %v", err)
	}
	for _, e := range list {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, "/memfd:clustergym") {
			n++
		}
	}
	return n
}

func TestTheWelcomeTellsWhereToLook(t *testing.T) {
	before := regions(t)
	s := serve(t, quick())
	p := s.connect()
	w := p.hello("feat", []any{"resume", "shm"})
	probe, _ := w.Get("shm").(wire.Map)
	path, _ := probe.Str("path", "")
	check, _ := probe.Bytes("check")
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, check) || len(check) < 16 {
		t.Errorf("%q holds %x (%v), and the welcome says %x", path, got, err, check)
	}
	if w := s.connect().hello("feat", []any{"resume"}); w.Get("shm") != nil {
		t.Error("a client that does not know the feature is told")
	}
	j, _, err := s.dial(wire.SubJSON, nil)
	if err != nil {
		t.Fatal(err)
	}
	if w := j.hello("feat", []any{"shm"}); w.Get("shm") != nil {
		t.Error("a session in JSON is told")
	}
	s.stop()
	s.wait()
	if n := regions(t); n != before {
		t.Errorf("%d descriptors of shared memory after the server's end, %d before it", n, before)
	}

	cfg := quick()
	cfg.SharedMemory = false
	if w := serve(t, cfg).connect().hello("feat", []any{"shm"}); w.Get("shm") != nil || len(w.Get("feat").([]any)) != 0 {
		t.Errorf("a server that does not share says %v", w)
	}
}
