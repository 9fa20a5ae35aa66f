package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A checkpoint without its replay is whole: what is left loads, what was dropped is missed by name, and dropping it
// again is no fault.
func TestDrop(t *testing.T) {
	root := t.TempDir()
	dir := Dir(root, 7)
	want := parts("one")
	if err := Save(dir, Meta{Step: 7, Env: "E-v1"}, want...); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Drop(dir, "replay.bin", "other.bin"); err != nil {
			t.Fatal(err)
		}
		m, err := Verify(dir)
		if err != nil || len(m.Parts) != 2 || m.Meta.Step != 7 || m.Meta.Env != "E-v1" {
			t.Fatalf("got %+v, %v", m, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "replay.bin")); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("the file is still there: %v", err)
		}
		// As if a crash had come between the new manifest and the file's removal.
		if err := os.WriteFile(filepath.Join(dir, "replay.bin"), []byte("left"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, dropTemp), []byte("{"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := &blob{name: "weights.safetensors"}
	if _, err := Load(dir, got, &blob{name: "empty.bin"}); err != nil || string(got.data) != "weights one" {
		t.Errorf("the weights are %q, %v", got.data, err)
	}
	if _, err := Load(dir, places()...); err == nil {
		t.Error("a replay that was dropped is loaded")
	}
	if err := Drop(dir, "../x"); err == nil {
		t.Error("a part outside the checkpoint is dropped")
	}
	if err := Drop(Dir(root, 8), "replay.bin"); !errors.Is(err, ErrDamaged) {
		t.Errorf("without a checkpoint: %v", err)
	}
}
