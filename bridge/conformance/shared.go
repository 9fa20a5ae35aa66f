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

// sharer opens n environments with shared observations. It skips the claim if the server's memory is not visible here.
func (s *suite) sharer(n int) *player {
	c := s.dial()
	c.grants("shm")
	probe := field(c.welcome.Sub("shm"))
	path, check := field(probe.Str("path", "")), field(probe.Bytes("check"))
	if len(check) < 16 {
		failf("shm.check has %d bytes, want 16 or more", len(check))
	}
	if b, err := readShared(path, int64(len(check))); err != nil || !bytes.Equal(b, check) {
		skipf("the server's memory is not seen from here")
	}
	p := s.openOn(c, n, "autoreset", "same_step", "shm", true)
	if !p.open.Has("shm") {
		skipf("the server does not share observations of %d environments", n)
	}
	return p
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

// shown returns reply with the observations that it leaves to the server's memory.
func (p *player) shown(reply wire.Map, space *wire.Space) wire.Map {
	told := field(p.open.Sub("shm"))
	path, size := field(told.Str("path", "")), field(told.Int("size", 0, 1, 1<<40))
	row, where := field(told.Int("row", 0, 1, 1<<40)), field(told.Sub("at"))
	memory, err := readShared(path, size)
	if err != nil {
		failf("shm.path: %w", err)
	}
	if int64(len(memory)) != size || size != 4*row*int64(p.n) {
		failf("%d bytes of shared memory, size says %d, and %d rows of %d numbers take %d",
			len(memory), size, p.n, row, 4*row*int64(p.n))
	}
	obs := field(reply.Sub("obs"))
	for _, p := range obs {
		if where.Has(p.Key) || !slices.Contains(space.Names, p.Key) {
			failf("obs has %q, want only what does not stand in shared memory", p.Key)
		}
	}
	out := wire.Map{}
	for i, name := range space.Names {
		if obs.Has(name) {
			out = append(out, wire.Pair{Key: name, Value: obs.Get(name)})
			continue
		}
		each := int64(numbers(&space.Items[i]))
		from, e := where.Int(name, -1, 0, row-each)
		if e != nil || from < 0 {
			failf("shm.at: %q is at %v, and %d numbers of a row of %d belong to it", name, where.Get(name), each, row)
		}
		a := wire.Array{DType: wire.F32, Shape: append([]int{p.n}, space.Items[i].Shape...)}
		for k := range int64(p.n) {
			at := 4 * (k*row + from)
			a.Data = append(a.Data, memory[at:at+4*each]...)
		}
		out = append(out, wire.Pair{Key: name, Value: a})
	}
	return merge(reply, m("obs", out))
}

// numbers returns how many numbers a value of a space with a shape has.
func numbers(sp *wire.Space) int {
	n := 1
	for _, d := range sp.Shape {
		n *= d
	}
	return n
}

// sharedMemoryShowsTheSame plays the same steps with shared and with sent observations, and compares them.
func (s *suite) sharedMemoryShowsTheSame() {
	const enough = 1 << 17 // numbers of a batch that is surely worth sharing
	one := s.start(1)
	space := field(wire.ParseSpace(one.open.Get("obs_space")))
	width := 0
	for i := range space.Items {
		width += numbers(&space.Items[i])
	}
	if space.Kind != "dict" || width == 0 {
		skipf("the observation is no map of arrays")
	}
	n := min((enough+width-1)/width, int(one.conn.limit("envs")))
	p := s.sharer(n)
	sent := s.start(n, "autoreset", "same_step")
	both := func(op string, fields ...any) wire.Map {
		x, y := sent.ask(op, fields...), p.shown(p.ask(op, fields...), space)
		// The ids of the requests differ.
		must(compare.Alike(op, sorted(dropping(x, "re")), sorted(dropping(y, "re"))))
		return x
	}
	reply := both(wire.OpReset, "seed", 5)
	for range 12 {
		reply = both(wire.OpStep, "a", sent.actions(sent.legal(s.draw, sent.masks(reply, n))))
	}
	both(wire.OpReset, "seed", 9)
}

// sorted returns v with its keys sorted.
func sorted(v wire.Map) wire.Map {
	out := slices.Clone(v)
	slices.SortFunc(out, func(a, b wire.Pair) int { return strings.Compare(a.Key, b.Key) })
	return out
}
