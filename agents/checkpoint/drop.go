package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// dropTemp is where Drop writes the manifest before it takes the place of the old one.
const dropTemp = tempPrefix + ManifestName

// Drop removes the named parts from the checkpoint in dir: large ones that only resuming needs, such as a replay, once
// nobody will resume from there. Names that it does not have are ignored. A crash at any moment leaves a whole
// checkpoint, with the parts or without them. The caller must be the only one who changes dir.
func Drop(dir string, names ...string) error {
	m, err := readManifest(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := checkName(name); err != nil {
			return err
		}
	}
	before := len(m.Parts)
	m.Parts = slices.DeleteFunc(m.Parts, func(f File) bool { return slices.Contains(names, f.Name) })
	if len(m.Parts) < before {
		if err := rewrite(dir, m); err != nil {
			return err
		}
	}
	for _, name := range names { // also those whose removal an earlier crash cut short
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("checkpoint: %w", err)
		}
	}
	return nil
}

// rewrite replaces the manifest of dir by m.
func rewrite(dir string, m *Manifest) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	tmp := filepath.Join(dir, dropTemp)
	if err := os.RemoveAll(tmp); err != nil { // of a crash
		return fmt.Errorf("checkpoint: %w", err)
	}
	if _, err := writeFile(tmp, strings.NewReader(string(data)+"\n"), func() {}); err != nil {
		return errors.Join(fmt.Errorf("checkpoint: %w", err), os.RemoveAll(tmp))
	}
	if err := os.Rename(tmp, filepath.Join(dir, ManifestName)); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return syncDir(dir)
}
