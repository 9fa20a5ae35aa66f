package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/wire"
)

// sharer opens n environments with shared observations. It returns a skip if the server's memory is not visible here.
func (s *suite) sharer(n int) (*player, error) {
	c, err := s.dial()
	if err != nil {
		return nil, err
	}
	if !c.has("shm") {
		return nil, skip("the server does not grant shm")
	}
	probe, e := c.welcome.Sub("shm")
	if e != nil {
		return nil, e
	}
	path, e1 := probe.Str("path", "")
	check, e2 := probe.Bytes("check")
	if err := first(asError(e1), asError(e2)); err != nil {
		return nil, err
	}
	if len(check) < 16 {
		return nil, fmt.Errorf("shm.check has %d bytes, want 16 or more", len(check))
	}
	if b, err := readShared(path, int64(len(check))); err != nil || !bytes.Equal(b, check) {
		return nil, skip("the server's memory is not seen from here")
	}
	p, err := s.openOn(c, n, "autoreset", "same_step", "shm", true)
	if err != nil {
		return nil, err
	}
	if !p.open.Has("shm") {
		return nil, skip(fmt.Sprintf("the server does not share observations of %d environments", n))
	}
	return p, nil
}

// readShared reads a file of the size that the server announced. The path comes from the server, so only regular files
// are read: a pipe would block, and a device may have no end.
func readShared(path string, size int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, size+1))
	return b, errors.Join(err, f.Close())
}

// asError keeps a nil pointer from becoming an error.
func asError(e *wire.Error) error {
	if e == nil {
		return nil
	}
	return e
}

// shown returns reply with the observations that it leaves to the server's memory.
func (p *player) shown(reply wire.Map, space *wire.Space) (wire.Map, error) {
	told, e := p.open.Sub("shm")
	if e != nil {
		return nil, e
	}
	path, e1 := told.Str("path", "")
	size, e2 := told.Int("size", 0, 1, 1<<40)
	row, e3 := told.Int("row", 0, 1, 1<<40)
	where, e4 := told.Sub("at")
	if err := first(asError(e1), asError(e2), asError(e3), asError(e4)); err != nil {
		return nil, err
	}
	memory, err := readShared(path, size)
	if err != nil {
		return nil, fmt.Errorf("shm.path: %w", err)
	}
	if int64(len(memory)) != size || size != 4*row*int64(p.n) {
		return nil, fmt.Errorf("%d bytes of shared memory, size says %d, and %d rows of %d numbers take %d", len(memory), size, p.n, row, 4*row*int64(p.n))
	}
	obs, e := reply.Sub("obs")
	if e != nil {
		return nil, fmt.Errorf("obs: %w", e)
	}
	for _, p := range obs {
		if where.Has(p.Key) || !slices.Contains(space.Names, p.Key) {
			return nil, fmt.Errorf("obs has %q, want only what does not stand in shared memory", p.Key)
		}
	}
	out := wire.Map{}
	for i, name := range space.Names {
		if obs.Has(name) {
			out = append(out, wire.Pair{Key: name, Value: obs.Get(name)})
			continue
		}
		each := int64(1)
		for _, d := range space.Items[i].Shape {
			each *= int64(d)
		}
		from, e := where.Int(name, -1, 0, row-each)
		if e != nil || from < 0 {
			return nil, fmt.Errorf("shm.at: %q is at %v, and %d numbers of a row of %d belong to it", name, where.Get(name), each, row)
		}
		a := wire.Array{DType: wire.F32, Shape: append([]int{p.n}, space.Items[i].Shape...)}
		for k := range int64(p.n) {
			at := 4 * (k*row + from)
			a.Data = append(a.Data, memory[at:at+4*each]...)
		}
		out = append(out, wire.Pair{Key: name, Value: a})
	}
	return merge(reply, m("obs", out)), nil
}

// sharedMemoryShowsTheSame plays the same steps with shared and with sent observations, and compares them.
func (s *suite) sharedMemoryShowsTheSame() error {
	const enough = 1 << 17 // numbers of a batch that is surely worth sharing
	one, err := s.start(1)
	if err != nil {
		return err
	}
	space, e := wire.ParseSpace(one.open.Get("obs_space"))
	if e != nil {
		return e
	}
	width := 0
	for _, item := range space.Items {
		each := 1
		for _, d := range item.Shape {
			each *= d
		}
		width += each
	}
	if space.Kind != "dict" || width == 0 {
		return skip("the observation is no map of arrays")
	}
	n := min((enough+width-1)/width, int(one.conn.limit("envs")))
	p, err := s.sharer(n)
	if err != nil {
		return err
	}
	sent, err := s.start(n, "autoreset", "same_step")
	if err != nil {
		return err
	}
	both := func(op string, fields ...any) (wire.Map, error) {
		x, err1 := sent.ask(op, fields...)
		y, err2 := p.ask(op, fields...)
		if err := first(err1, err2); err != nil {
			return nil, err
		}
		if y, err = p.shown(y, space); err != nil {
			return nil, err
		}
		// The ids of the requests differ.
		return x, compare.Alike(op, sorted(merge(x, m("re", 0))), sorted(merge(y, m("re", 0))))
	}
	reply, err := both(wire.OpReset, "seed", 5)
	if err != nil {
		return err
	}
	for range 12 {
		mask, err := sent.masks(reply, n)
		if err != nil {
			return err
		}
		a, err := sent.legal(s.draw, mask)
		if err != nil {
			return err
		}
		if reply, err = both(wire.OpStep, "a", sent.actions(a)); err != nil {
			return err
		}
	}
	_, err = both(wire.OpReset, "seed", 9)
	return err
}

// sorted returns v with its keys sorted.
func sorted(v wire.Map) wire.Map {
	out := slices.Clone(v)
	slices.SortFunc(out, func(a, b wire.Pair) int { return strings.Compare(a.Key, b.Key) })
	return out
}
