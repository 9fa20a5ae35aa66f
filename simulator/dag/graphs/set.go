package graphs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"clustergym/internal/rng"
	"clustergym/simulator/dag"
	"clustergym/simulator/dag/dagjson"
	"clustergym/traces"
)

// Set is graphs in a fixed order, in three parts: the first 70 % train, the next 10 % choose between checkpoints, the
// last 20 % judge. No graph is in two parts. It does not change after NewSet and is safe for concurrent use.
type Set struct {
	all   []Graph
	sha   string
	notes []string
}

// NewSet returns the set of these graphs. It keeps the slice. Names and places (At) appear in messages only.
func NewSet(all []Graph) (*Set, error) {
	if len(all) == 0 {
		return nil, errors.New("task graphs: got none, want at least two, one of them for training and one for the test")
	}
	h := sha256.New()
	for i := range all {
		if err := dagjson.Write(h, all[i].Graph, all[i].Platform); err != nil {
			return nil, fmt.Errorf("%s: %w", all[i].At, err)
		}
	}
	return &Set{all: all, sha: hex.EncodeToString(h.Sum(nil))}, nil
}

// Load reads the graphs of a file, or of all files in and below a folder that end in .json, .jsonl or .csv (with .gz or
// .zst after it, where packed), in the order of their paths. Files of a folder may differ in format. Errors name the
// file and the place in it.
func Load(ctx context.Context, path string, o Options) (*Set, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	files, err := list(ctx, o.From, path)
	if err != nil {
		return nil, err
	}
	var all []Graph
	var notes []string
	small := 0
	for _, file := range files {
		if err := func() (err error) {
			r, err := Open(ctx, file, o)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, r.Close()) }()
			for {
				g, err := r.Next()
				switch {
				case err == io.EOF:
					notes = append(notes, r.Notes()...)
					return nil
				case err != nil:
					return err
				case g.Len() < o.MinTasks:
					small++
				default:
					all = append(all, *g)
				}
			}
		}(); err != nil {
			return nil, err
		}
	}
	if len(all) == 0 && small > 0 {
		return nil, fmt.Errorf("%s: none of %d graphs has min_tasks = %d tasks; want a smaller min_tasks", path, small,
			o.MinTasks)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: there is no task graph in it%s", path, strings.Join(append([]string{""}, notes...), "; "))
	}
	s, err := NewSet(all)
	if err != nil {
		return nil, err
	}
	s.notes = notes
	return s, nil
}

// list returns the files at path.
func list(ctx context.Context, from *traces.Files, path string) ([]string, error) {
	files, err := from.List(ctx, path, func(p string) bool {
		plain := strings.TrimSuffix(strings.TrimSuffix(p, ".gz"), ".zst")
		return slices.Contains([]string{".json", ".jsonl", ".csv"}, filepath.Ext(plain))
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("task graphs %s: there is no such file or folder: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("task graphs: %w", err)
	}
	if files == nil {
		return nil, fmt.Errorf("task graphs %s: the folder has no file that ends in .json, .jsonl or .csv", path)
	}
	return files, nil
}

// Notes returns sentences about what the files have that their user should know of; see Reader.Notes.
func (s *Set) Notes() []string { return s.notes }

// Len returns the number of graphs in all parts together.
func (s *Set) Len() int { return len(s.all) }

// Graph returns graph i of the whole set, in the order of the files.
func (s *Set) Graph(i int) Graph { return s.all[i] }

// SHA256 returns the digest, in hexadecimal digits, of all graphs and platforms in their order.
func (s *Set) SHA256() string { return s.sha }

// Count returns the number of graphs of part p.
func (s *Set) Count(p traces.Part) int {
	if p > traces.Test {
		return 0
	}
	lo, hi := p.Bounds(len(s.all))
	return hi - lo
}

// At returns graph number window of part p, which does not depend on seed, or for window -1 one that is drawn from seed
// alone, and the processors that its file gives, nil where it gives none.
func (s *Set) At(p traces.Part, seed uint64, window int) (g *dag.Graph, own *dag.Platform, err error) {
	n := s.Count(p)
	switch {
	case p > traces.Test:
		return nil, nil, errors.New("task graphs: want part training, validation or test")
	case n == 0:
		return nil, nil, s.tooFew(p)
	case window < -1 || window >= n:
		return nil, nil, fmt.Errorf("graph %d of the %s part: want 0 to %d, or -1 for one drawn from the seed", window, p,
			n-1)
	case window < 0:
		window = rng.Stream(seed, "dag/graphs/window").IntN(n)
	}
	lo, _ := p.Bounds(len(s.all))
	at := &s.all[lo+window]
	return at.Graph, at.Platform, nil
}

// Place returns file and place in it of graph number window of part p, "" where there is none.
func (s *Set) Place(p traces.Part, window int) string {
	if window < 0 || window >= s.Count(p) {
		return ""
	}
	lo, _ := p.Bounds(len(s.all))
	return s.all[lo+window].At
}

// tooFew says that part p has no graph, and how many graphs would give every part one.
func (s *Set) tooFew(p traces.Part) error {
	need := len(s.all)
	for ok := false; !ok; {
		need++
		ok = true
		for q := traces.Training; q <= traces.Test; q++ {
			lo, hi := q.Bounds(need)
			ok = ok && lo < hi
		}
	}
	share := [...]int{70, 10, 20}[p]
	return fmt.Errorf("too few task graphs: the %s part (%d %%) has none of %d; %d graphs give every part one", p, share,
		len(s.all), need)
}
