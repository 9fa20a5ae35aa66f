package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"clustergym/internal/ordinary"
)

// Format is the version of the directory's layout. It rises when an older reader could misread a newer checkpoint.
const Format = 1

// ManifestName is the file that makes a directory a checkpoint.
const ManifestName = "manifest.json"

// maxManifest is how much of a manifest is read at most: far more than any real one has.
const maxManifest = 1 << 20

var (
	// ErrNone is returned by Latest when a directory holds no checkpoint.
	ErrNone = errors.New("checkpoint: none found")
	// ErrDamaged is returned when a directory is no whole checkpoint: without a manifest, or with a file that is
	// missing, cut short or changed. The error's text names the file.
	ErrDamaged = errors.New("checkpoint: damaged")
	// ErrParts is returned by Load when the checkpoint's parts are not those asked for.
	ErrParts = errors.New("checkpoint: other parts than asked for")
	// ErrMismatch is returned by Meta.Match.
	ErrMismatch = errors.New("checkpoint: made for something else")
)

// Meta says what a checkpoint belongs to.
type Meta struct {
	Format  int    `json:"format"`            // set by Save
	Step    int64  `json:"step"`              // environment steps when saved
	Env     string `json:"env"`               // env.Spec.ID
	Agent   string `json:"agent"`             // kind, as "ppo"
	Network string `json:"network,omitempty"` // fingerprint of the parameters' names and shapes
	// set of float32 kernels; another set continues with other last bits
	Kernels string            `json:"kernels,omitempty"`
	Seed    uint64            `json:"seed"`
	Extra   map[string]string `json:"extra,omitempty"` // anything else worth keeping, such as a note
}

// Match returns ErrMismatch with the first of environment, agent and network in which m differs from want, or nil.
// Fields that want leaves empty are not compared.
func (m Meta) Match(want Meta) error {
	for _, f := range []struct{ name, got, want string }{
		{"environment", m.Env, want.Env}, {"agent", m.Agent, want.Agent}, {"network", m.Network, want.Network},
	} {
		if f.want != "" && f.got != f.want {
			return fmt.Errorf("%w: its %s is %q, this run's is %q", ErrMismatch, f.name, f.got, f.want)
		}
	}
	return nil
}

// Manifest is the content of manifest.json.
type Manifest struct {
	Meta  Meta   `json:"meta"`
	Parts []File `json:"parts"` // in the order of saving
}

// File is one part on disk.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // hexadecimal
}

func (m *Manifest) find(name string) *File {
	for i := range m.Parts {
		if m.Parts[i].Name == name {
			return &m.Parts[i]
		}
	}
	return nil
}

// checkName returns why a part cannot have this name, or nil if it can.
func checkName(name string) error {
	if name == "" || name == ManifestName || strings.HasPrefix(name, ".") || strings.ContainsAny(name, "/\\:\x00") {
		return fmt.Errorf("checkpoint: a part cannot be called %q", name)
	}
	return nil
}

// readManifest reads and checks dir's manifest. It does not read the parts.
func readManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, ManifestName)
	f, err := ordinary.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is missing, so the checkpoint was never finished", ErrDamaged, path)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	data, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	if len(data) > maxManifest {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrDamaged, path, maxManifest)
	}
	var m Manifest
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("%w: %s is no whole manifest: %v", ErrDamaged, path, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("%w: %s has something behind its manifest", ErrDamaged, path)
	}
	if m.Meta.Format != Format {
		return nil, fmt.Errorf("%w: %s has format %d, this program reads %d", ErrDamaged, path, m.Meta.Format, Format)
	}
	for i, p := range m.Parts {
		if err := checkName(p.Name); err != nil {
			return nil, fmt.Errorf("%w: %s: %v", ErrDamaged, path, err)
		}
		if m.find(p.Name) != &m.Parts[i] {
			return nil, fmt.Errorf("%w: %s lists %q twice", ErrDamaged, path, p.Name)
		}
	}
	return &m, nil
}
