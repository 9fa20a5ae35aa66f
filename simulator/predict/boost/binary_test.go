package boost

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"clustergym/internal/snap"
)

// small fits a model of a few trees.
func small(t testing.TB) *Model {
	rows, target := noise(stream(t, "binary"), 200, 3)
	o := DefaultOptions()
	o.Trees, o.Leaves, o.MinLeaf = 3, 4, 5
	return mustFit(t, rows, target, []float64{0.25, 0.5}, o)
}

func TestAModelSurvivesItsBytes(t *testing.T) {
	constant := mustFit(t, []float32{1, 2}, []float64{4, 4}, []float64{0.5}, stump) // without a tree
	for _, m := range []*Model{small(t), constant} {
		b := m.AppendBinary([]byte("before"))
		if string(b[:6]) != "before" {
			t.Fatal("what stood before is lost")
		}
		again, err := Parse(b[6:])
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again.AppendBinary(nil), b[6:]) {
			t.Error("the model that was read has other bytes")
		}
		if len(m.parts[0].roots) > 0 && !reflect.DeepEqual(again, m) {
			t.Errorf("got %+v, want %+v", again, m)
		}
	}
}

func TestATruncatedOrChangedModelIsRefused(t *testing.T) {
	b := small(t).AppendBinary(nil)
	for n := range b {
		if _, err := Parse(b[:n]); !errors.Is(err, snap.ErrCorrupt) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
	for i := range b {
		b[i] ^= 1
		if _, err := Parse(b); !errors.Is(err, snap.ErrCorrupt) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
		b[i] ^= 1
	}
	_, err := Parse(b[:len(b)-1])
	if want := "boost: the bytes are no model: snap: corrupt: checksum differs"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

// Forged bytes have a checksum that is right.
func TestForgedModelsAreRefused(t *testing.T) {
	fork := func(children ...int32) []node {
		var nodes []node
		for i := 0; i < len(children); i += 2 {
			nodes = append(nodes, node{child: [2]int32{children[i], children[i+1]}})
		}
		return nodes
	}
	one := func(n node) []node { n.child = [2]int32{^0, ^1}; return []node{n} }
	for _, c := range []struct {
		name  string
		nodes []node
		want  string
	}{
		{"", fork(1, 2, ^0, ^1, ^2, ^3), ""},
		{"a split above itself", fork(0, ^0), "split 0 has child 0"},
		{"a cycle", fork(1, ^0, 0, ^1), "split 1 has child 0"},
		{"a split of the next tree", fork(1, ^0), "split 0 has child 1"},
		{"a leaf that is not there", fork(^0, ^2), "split 0 has child -3"},
		{"the farthest leaf", fork(^0, math.MinInt32), "split 0 has child -2147483648"},
		{"the farthest split", fork(^0, math.MaxInt32), "split 0 has child 2147483647"},
		{"a leaf twice", fork(^0, ^0), "split 0 has child -1"},
		{"a split twice", fork(1, 1, ^0, ^1), "split 0 has child 1"},
		{"a split without a parent", fork(^0, ^1, ^2, ^3), "split 1 has child -4"},
		{"another feature", one(node{feature: 1}), "feature 1"},
		{"no threshold", one(node{threshold: nan}), "threshold NaN"},
		{"a third side", one(node{missing: 2}), "missing 2"},
		{"no split", nil, "number is missing or out of range"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &Model{names: []string{"a"}, levels: []float64{0.5}, gains: []float64{1}, parts: []ensemble{{
				roots: []int32{0}, nodes: c.nodes, values: make([]float64, len(c.nodes)+1),
			}}}
			_, err := Parse(m.AppendBinary(nil))
			switch {
			case c.want == "" && err != nil, c.want != "" &&
				(err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, snap.ErrCorrupt)):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	for _, c := range []struct {
		change func(m *Model)
		want   string
	}{
		{func(m *Model) { m.names[1] = m.names[0] }, "two features have the name"},
		{func(m *Model) { m.names, m.gains = nil, nil }, "0 features"},
		{func(m *Model) { m.gains[0] = math.NaN() }, "the gain of feature 0 is NaN"},
		{func(m *Model) { m.gains[0] = -1 }, "the gain of feature 0 is -1"},
		{func(m *Model) { m.levels[0] = 0.5 }, "level 1 is 0.5"},
		{func(m *Model) { m.levels, m.parts = nil, nil }, "0 levels"},
		{func(m *Model) { m.parts[1].start = math.NaN() }, "level 1: snap: corrupt: it starts at NaN"},
		{func(m *Model) { m.parts[1].values[0] = math.Inf(1) }, "level 1: tree 0: snap: corrupt: a leaf's value is +Inf"},
	} {
		m := small(t)
		c.change(m)
		if _, err := Parse(m.AppendBinary(nil)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

// FuzzParse replaces some bytes of a model by others and puts the right checksum behind. What Parse accepts has the
// same bytes again, and predicts numbers.
func FuzzParse(f *testing.F) {
	whole := small(f).AppendBinary(nil)
	body := whole[:len(whole)-4]
	f.Add(uint32(0), body)
	f.Add(uint32(len(magic)), binary.LittleEndian.AppendUint64(nil, math.MaxUint64))
	for at := len(magic); at < len(body); at += 8 {
		f.Add(uint32(at), []byte{0xff, 1})
	}
	f.Fuzz(func(t *testing.T, at uint32, part []byte) {
		src := bytes.Clone(body)
		if at == 0 {
			src = bytes.Clone(part)
		} else {
			copy(src[int(at)%len(src):], part)
		}
		src = snap.Seal(src, 0)
		m, err := Parse(src)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "boost: ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q", err)
			}
			return
		}
		if !bytes.Equal(m.AppendBinary(nil), src) {
			t.Error("the model that was read has other bytes")
		}
		for _, x := range []float32{nan, 0, 1} {
			row := make([]float32, len(m.Names()))
			for i := range row {
				row[i] = x
			}
			for _, q := range predict(m, row...) {
				if math.IsNaN(q) || math.IsInf(q, 0) {
					t.Errorf("predicts %v", q)
				}
			}
		}
	})
}
