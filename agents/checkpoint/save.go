package checkpoint

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"clustergym/agents"
	"clustergym/internal/durable"
	"clustergym/internal/lock"
	"clustergym/internal/shortage"
)

// Names of temporary directories beside the checkpoints: an unfinished save, a replaced checkpoint until its
// successor is in place, and a checkpoint that is being removed.
const (
	tempPrefix = ".tmp-"
	oldPrefix  = ".old-"
	gonePrefix = ".gone-"
)

// Save writes the parts to dir as one checkpoint. It makes dir's parents, and replaces a checkpoint that is already
// there. A crash at any moment leaves the old checkpoint or the new one, never a mixture. Only one process may save
// next to dir at a time. It survives a short lack of file descriptors. After another error, such as a full disk, it can
// be called again.
func Save(dir string, m Meta, parts ...agents.Part) error {
	return shortage.Files(func() error { return save(dir, m, parts, func(string) {}) })
}

// save calls hook with the name of every change that it is about to make on disk, and once it has finished. Tests
// kill the process there.
func save(dir string, m Meta, parts []agents.Part, hook func(op string)) error {
	seen := map[string]bool{}
	for _, p := range parts {
		if err := checkName(p.Name()); err != nil {
			return err
		}
		if seen[p.Name()] {
			return fmt.Errorf("checkpoint: two parts are called %q", p.Name())
		}
		seen[p.Name()] = true
	}
	dir = filepath.Clean(dir)
	root, base := filepath.Split(dir)
	if root == "" {
		root = "."
	}
	if base == "" || strings.HasPrefix(base, ".") {
		return fmt.Errorf("checkpoint: %q cannot be a checkpoint's directory", dir)
	}
	hook("make root")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	hook("clean")
	if err := clean(root); err != nil {
		return err
	}
	tmp, old := filepath.Join(root, tempPrefix+base), filepath.Join(root, oldPrefix+base)
	hook("make directory")
	if err := os.Mkdir(tmp, 0o755); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	unlock, err := lock.Folder(tmp)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	defer unlock()
	if err := fill(tmp, m, parts, hook); err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}

	replaced := false
	if _, err := os.Lstat(dir); err == nil {
		hook("move old aside")
		if err := os.Rename(dir, old); err != nil {
			return errors.Join(fmt.Errorf("checkpoint: %w", err), os.RemoveAll(tmp))
		}
		replaced = true
	}
	hook("rename")
	if err := os.Rename(tmp, dir); err != nil {
		return fmt.Errorf("checkpoint: %w", err) // clean puts the old one back
	}
	hook("sync root")
	if err := syncDir(root); err != nil {
		return err
	}
	if replaced {
		hook("remove old")
		if err := os.RemoveAll(old); err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
	}
	hook("done")
	return nil
}

// fill writes parts and manifest into the empty directory tmp and syncs everything.
func fill(tmp string, m Meta, parts []agents.Part, hook func(op string)) error {
	m.Format = Format
	man := Manifest{Meta: m, Parts: []File{}}
	for _, p := range parts {
		hook("write " + p.Name())
		f, err := writeFile(filepath.Join(tmp, p.Name()), p, func() { hook("sync " + p.Name()) })
		if err != nil {
			return fmt.Errorf("checkpoint: part %s: %w", p.Name(), err)
		}
		f.Name = p.Name()
		man.Parts = append(man.Parts, f)
	}
	// The parts' names must be on disk before the manifest can be.
	hook("sync parts")
	if err := syncDir(tmp); err != nil {
		return err
	}
	data, err := json.MarshalIndent(man, "", "  ")
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	hook("write " + ManifestName)
	src := strings.NewReader(string(data) + "\n")
	if _, err := writeFile(filepath.Join(tmp, ManifestName), src, func() { hook("sync " + ManifestName) }); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	hook("sync directory")
	return syncDir(tmp)
}

// writeFile writes src to a new file, syncs it, and returns what it wrote.
func writeFile(path string, src io.WriterTo, written func()) (File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return File{}, err
	}
	sum := sha256.New()
	size := &counter{}
	w := bufio.NewWriterSize(io.MultiWriter(f, sum, size), 1<<16)
	if _, err = src.WriteTo(w); err == nil {
		err = w.Flush()
	}
	if err == nil {
		written()
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return File{Size: size.n, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}

// counter counts bytes. The count that a part returns is not trusted.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	if err := durable.Names(dir); err != nil {
		return fmt.Errorf("checkpoint: sync %s: %w", dir, err)
	}
	return nil
}

// clean tidies root after a crash: a replaced checkpoint whose successor never arrived comes back, and every other
// temporary directory is removed, except those that another process is writing.
func clean(root string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		path := filepath.Join(root, name)
		switch {
		case strings.HasPrefix(name, tempPrefix):
			var others bool
			if others, err = busy(path); err == nil && !others {
				err = os.RemoveAll(path)
			}
		case strings.HasPrefix(name, oldPrefix):
			base := strings.TrimPrefix(name, oldPrefix)
			var others bool
			if others, err = busy(filepath.Join(root, tempPrefix+base)); err == nil && !others {
				err = putBack(path, filepath.Join(root, base))
			}
		case strings.HasPrefix(name, gonePrefix):
			err = os.RemoveAll(path)
		}
		if err != nil {
			return fmt.Errorf("checkpoint: clean up: %w", err)
		}
	}
	return nil
}

// putBack restores a replaced checkpoint unless its successor is in place.
func putBack(old, dir string) error {
	if _, err := os.Lstat(dir); err == nil {
		return os.RemoveAll(old)
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Rename(old, dir)
}
