package durable

import (
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"testing"
)

func TestNamesOfAFolder(t *testing.T) {
	dir := t.TempDir()
	if err := Names(dir); err != nil {
		t.Error(err)
	}
	if err := Names(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) && runtime.GOOS != "windows" {
		t.Errorf("of a folder that is not there: %v", err)
	}
}
