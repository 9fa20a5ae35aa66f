package checkpoint

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"clustergym/agents"
	"clustergym/internal/ordinary"
)

// Load restores the parts from dir, in the order given. The checkpoint must hold exactly these parts; a missing or an
// extra one is ErrParts. All sizes and hashes are compared first, and nothing is changed if one differs (ErrDamaged).
// If a part then refuses its bytes, the error names it; parts before it have been restored.
func Load(dir string, parts ...agents.Part) (Meta, error) {
	m, err := Verify(dir)
	if err != nil {
		return Meta{}, err
	}
	for _, f := range m.Parts {
		asked := false
		for _, p := range parts {
			asked = asked || p.Name() == f.Name
		}
		if !asked {
			return Meta{}, fmt.Errorf("%w: %s holds %s, which this run has no place for", ErrParts, dir, f.Name)
		}
	}
	return m.Meta, restore(dir, m, parts)
}

// restore reads parts whose hashes have been compared.
func restore(dir string, m *Manifest, parts []agents.Part) error {
	for i, p := range parts {
		if m.find(p.Name()) == nil {
			return fmt.Errorf("%w: %s holds no %s", ErrParts, dir, p.Name())
		}
		for _, q := range parts[:i] {
			if q.Name() == p.Name() {
				return fmt.Errorf("%w: %s is asked for twice", ErrParts, p.Name())
			}
		}
	}
	for _, p := range parts {
		if err := readPart(filepath.Join(dir, p.Name()), p); err != nil {
			return fmt.Errorf("checkpoint: %s: %w", filepath.Join(dir, p.Name()), err)
		}
	}
	return nil
}

func readPart(path string, p agents.Part) error {
	f, err := ordinary.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	_, err = p.ReadFrom(bufio.NewReaderSize(f, 1<<16))
	return err
}

// Open opens one part of dir for reading after comparing its hash. The caller closes it.
func Open(dir, name string) (io.ReadCloser, Meta, error) {
	if err := settle(dir); err != nil {
		return nil, Meta{}, err
	}
	m, err := readManifest(dir)
	if err != nil {
		return nil, Meta{}, err
	}
	f := m.find(name)
	if f == nil {
		return nil, Meta{}, fmt.Errorf("%w: %s holds no %s", ErrParts, dir, name)
	}
	if err := compare(dir, f); err != nil {
		return nil, Meta{}, err
	}
	r, err := ordinary.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, Meta{}, fmt.Errorf("checkpoint: %w", err)
	}
	return r, m.Meta, nil
}

// Verify compares size and hash of every part of dir with its manifest. The first difference is ErrDamaged, in one
// sentence that names the file.
func Verify(dir string) (*Manifest, error) {
	if err := settle(dir); err != nil {
		return nil, err
	}
	m, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	for i := range m.Parts {
		if err := compare(dir, &m.Parts[i]); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// settle puts dir back in place if a crash came after it was moved aside and before its successor was in place.
func settle(dir string) error {
	if _, err := os.Lstat(dir); err == nil || !errors.Is(err, os.ErrNotExist) {
		return nil // reading finds what is wrong with it, if anything
	}
	root, base := filepath.Split(filepath.Clean(dir))
	old, tmp := filepath.Join(root, oldPrefix+base), filepath.Join(root, tempPrefix+base)
	others, err := busy(tmp)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if _, err := os.Lstat(old); err == nil && !others {
		if err := putBack(old, dir); err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
		return nil
	}
	return fmt.Errorf("checkpoint: %s does not exist: %w", dir, os.ErrNotExist)
}

// compare reads the part f of dir and compares it with what the manifest says.
func compare(dir string, f *File) error {
	path := filepath.Join(dir, f.Name)
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %s is missing", ErrDamaged, path)
	}
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %s is no file", ErrDamaged, path)
	}
	if info.Size() != f.Size {
		return fmt.Errorf("%w: %s has %d bytes, its manifest says %d", ErrDamaged, path, info.Size(), f.Size)
	}
	r, err := ordinary.Open(path)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	defer func() { _ = r.Close() }() // only read
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(r, f.Size+1)); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != f.SHA256 {
		return fmt.Errorf("%w: the content of %s is not what was saved (sha256 %.12s…, its manifest says %.12s…)", ErrDamaged,
			path, got, f.SHA256)
	}
	return nil
}
