package boost

import (
	"fmt"
	"math"

	"clustergym/internal/snap"
)

// magic begins a model and names the version of its format.
const magic = "clustergym boost 1\n"

// maxValue bounds what a leaf read from a file may add, so that sums stay finite.
const maxValue = 1e303

// AppendBinary appends m to dst and returns the longer slice: names, levels and gains; then for each level its start,
// the number of its trees, and for each tree the number of splits, the splits, and the values of the leaves.
func (m *Model) AppendBinary(dst []byte) []byte {
	begin := len(dst)
	dst = snap.Int(snap.Begin(dst, magic), len(m.names))
	for i, name := range m.names {
		dst = snap.F64(snap.String(dst, name), m.gains[i])
	}
	dst = snap.Int(dst, len(m.levels))
	for i := range m.parts {
		e := &m.parts[i]
		dst = snap.Int(snap.F64(snap.F64(dst, m.levels[i]), e.start), len(e.roots))
		for k, root := range e.roots {
			end := len(e.nodes)
			if k+1 < len(e.roots) {
				end = int(e.roots[k+1])
			}
			nodes := e.nodes[root:end]
			dst = snap.Int(dst, len(nodes))
			for _, n := range nodes {
				dst = snap.U64(dst, uint64(math.Float32bits(n.threshold))|uint64(n.feature)<<32|uint64(n.missing)<<48)
				dst = snap.U64(dst, uint64(uint32(n.child[0]))|uint64(uint32(n.child[1]))<<32)
			}
			first := int(root) + k // each tree before has one leaf more than splits
			for _, v := range e.values[first : first+len(nodes)+1] {
				dst = snap.F64(dst, v)
			}
		}
	}
	return snap.Seal(dst, begin)
}

// Parse reads what AppendBinary wrote. src may be hostile: Parse checks every number, and takes memory in proportion to
// the bytes present.
func Parse(src []byte) (*Model, error) {
	m, err := parse(src)
	if err != nil {
		return nil, fmt.Errorf("boost: the bytes are no model: %w", err)
	}
	return m, nil
}

func parse(src []byte) (*Model, error) {
	r, err := snap.Open(src, magic)
	if err != nil {
		return nil, err
	}
	m := new(Model)
	for range r.Count(16) {
		m.names, m.gains = append(m.names, r.String()), append(m.gains, r.F64())
	}
	if err := checkNames(m.names); err != nil {
		return nil, corrupt("%w", err)
	}
	for i, gain := range m.gains {
		if !(gain >= 0 && gain <= math.MaxFloat64) {
			return nil, corrupt("the gain of feature %d is %v", i, gain)
		}
	}
	for i := range r.Count(24) {
		m.levels = append(m.levels, r.F64())
		e, err := parseEnsemble(&r, len(m.names))
		if err != nil {
			return nil, fmt.Errorf("level %d: %w", i, err)
		}
		m.parts = append(m.parts, e)
	}
	if err := r.Done(); err != nil {
		return nil, err
	}
	if err := checkLevels(m.levels); err != nil {
		return nil, corrupt("%w", err)
	}
	return m, nil
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %w", snap.ErrCorrupt, fmt.Errorf(format, args...))
}

func parseEnsemble(r *snap.Reader, features int) (e ensemble, err error) {
	if e.start = r.F64(); !valid(e.start) {
		return e, corrupt("it starts at %v", e.start)
	}
	trees := r.Count(40)
	if trees > maxTrees {
		return e, corrupt("%d trees, want at most %d", trees, maxTrees)
	}
	for k := range trees {
		if err := e.parseTree(r, features); err != nil {
			return e, fmt.Errorf("tree %d: %w", k, err)
		}
	}
	return e, nil
}

// parseTree appends a tree to e. A tree of n splits has n-1 splits and n+1 leaves below its root. If each of these is
// the child of one split, and splits come after their parents, there is one way from the root to each leaf.
func (e *ensemble) parseTree(r *snap.Reader, features int) error {
	n := r.Count(24)
	if n < 1 || n >= maxLeaves {
		return corrupt("%d splits, want 1 to %d", n, maxLeaves-1)
	}
	root, leaf := len(e.nodes), len(e.values)
	var splits, leaves [maxLeaves]bool // that are children
	for i := range n {
		a, b := r.U64(), r.U64()
		s := node{
			threshold: math.Float32frombits(uint32(a)), feature: uint16(a >> 32), missing: uint8(a >> 48),
			child: [2]int32{int32(uint32(b)), int32(uint32(b >> 32))},
		}
		if s.threshold != s.threshold || int(s.feature) >= features || a>>48 > 1 {
			return corrupt("split %d has threshold %v, feature %d, missing %d, want a number, one of %d features, 0 or 1",
				i, s.threshold, s.feature, a>>48, features)
		}
		for _, c := range s.child {
			taken, at, least, limit := &splits, int(c)-root, i+1, n
			if c < 0 {
				taken, at, least, limit = &leaves, int(^c)-leaf, 0, n+1
			}
			if at < least || at >= limit || taken[at] {
				return corrupt("split %d has child %d, which is outside its tree, above it or the child of another split", i, c)
			}
			taken[at] = true
		}
		e.nodes = append(e.nodes, s)
	}
	for range n + 1 {
		v := r.F64()
		if !valid(v) {
			return corrupt("a leaf's value is %v", v)
		}
		e.values = append(e.values, v)
	}
	e.roots = append(e.roots, int32(root))
	return nil
}

// valid reports whether x is a number that predictions may be sums of.
func valid(x float64) bool { return math.Abs(x) <= maxValue }
