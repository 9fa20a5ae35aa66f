package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"clustergym/agents"
	"clustergym/agents/checkpoint"
	"clustergym/internal/fault"
)

// saveRanks gives this rank's share of a checkpoint to rank 0, which writes it.
func (t *training) saveRanks(step int64) error {
	if t.given == step && step > 0 { // of a validation that was the best
		return nil
	}
	g, share := t.opt.Ranks, map[string][]byte{}
	for _, s := range t.shares {
		if err := s.Sync(); err != nil {
			return err
		}
		for _, p := range s.Share() {
			var b bytes.Buffer
			if _, err := p.WriteTo(&b); err != nil {
				return err
			}
			share[p.Name()] = b.Bytes()
		}
	}
	all, err := g.Collect(pack(share))
	if err != nil {
		return err
	}
	t.given = step
	if g.Rank() > 0 {
		return nil
	}
	shares := make([]map[string][]byte, len(all))
	for k, b := range all {
		if shares[k], err = unpack(b); err != nil {
			return fmt.Errorf("the share of rank %d: %w", k, err)
		}
	}
	var parts []agents.Part
	for _, s := range t.shares {
		whole, err := s.Whole(shares)
		if err != nil {
			return err
		}
		parts = append(parts, whole...)
	}
	if err := t.dir.SaveCheckpoint(t.meta(step), parts); err != nil {
		return err
	}
	t.saved = step
	return nil
}

// loadRanks restores the checkpoint in rank 0's dir, "" = none. Rank 0 gives the others what they ask for.
func (t *training) loadRanks(dir string) error {
	g := t.opt.Ranks
	parts := t.parts()
	var names []string
	for _, p := range parts {
		names = append(names, p.Name())
	}
	asked, err := g.Collect([]byte(strings.Join(names, "\n")))
	if err != nil {
		return err
	}
	var packs [][]byte
	if g.Rank() == 0 {
		if packs, err = packsFor(dir, asked); err != nil {
			return err
		}
	}
	own, err := g.Scatter(packs)
	if err != nil {
		return err
	}
	content, err := unpack(own)
	if err != nil {
		return err
	}
	if len(content) == 0 { // there is no checkpoint yet
		return nil
	}
	for _, p := range parts {
		if _, err := p.ReadFrom(bytes.NewReader(content[p.Name()])); err != nil {
			return &fault.Mistake{Err: fmt.Errorf("%s: checkpoint: %s: %w", t.runDir, p.Name(), err)}
		}
	}
	t.saved, t.given = t.trainer.Step(), t.trainer.Step()
	return nil
}

// packsFor returns what the ranks have asked for of the checkpoint in dir, which must hold nothing else.
func packsFor(dir string, asked [][]byte) ([][]byte, error) {
	packs := make([][]byte, len(asked))
	if dir == "" {
		for k := range packs {
			packs[k] = pack(nil)
		}
		return packs, nil
	}
	m, err := checkpoint.Verify(dir)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	content := map[string][]byte{}
	for _, f := range m.Parts {
		r, _, err := checkpoint.Open(dir, f.Name)
		if err != nil {
			return nil, &fault.Mistake{Err: err}
		}
		content[f.Name], err = io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil {
			return nil, err
		}
	}
	left := maps.Clone(content)
	for k, names := range asked {
		own := map[string][]byte{}
		for _, name := range strings.Split(string(names), "\n") {
			b, ok := content[name]
			if !ok {
				return nil, fmt.Errorf("%w: %s holds no %s", checkpoint.ErrParts, dir, name)
			}
			own[name] = b
			delete(left, name)
		}
		packs[k] = pack(own)
	}
	for name := range left {
		return nil, fmt.Errorf("%w: %s holds %s, which this run has no place for", checkpoint.ErrParts, dir, name)
	}
	return packs, nil
}

// pack joins named bytes.
func pack(m map[string][]byte) []byte {
	type entry struct {
		Name string
		Size int
	}
	list := []entry{}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, entry{name, len(m[name])})
	}
	head, _ := json.Marshal(list) // of strings and numbers
	b := append(head, '\n')
	for _, e := range list {
		b = append(b, m[e.Name]...)
	}
	return b
}

// unpack is the inverse of pack.
func unpack(b []byte) (map[string][]byte, error) {
	head, rest, _ := bytes.Cut(b, []byte("\n"))
	var list []struct {
		Name string
		Size int
	}
	if err := json.Unmarshal(head, &list); err != nil {
		return nil, err
	}
	m := map[string][]byte{}
	for _, e := range list {
		if e.Size < 0 || e.Size > len(rest) {
			return nil, fmt.Errorf("%s has %d bytes of %d", e.Name, e.Size, len(rest))
		}
		m[e.Name], rest = rest[:e.Size], rest[e.Size:]
	}
	return m, nil
}
