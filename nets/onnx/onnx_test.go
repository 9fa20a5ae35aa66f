package onnx

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// small is a model with everything that this package writes.
func small() *Model {
	return &Model{
		IR: 8, Producer: "p", Version: "1", Doc: "d", Opset: 17, Domains: map[string]int64{"other": 2},
		Metadata: []Property{{"k", "v"}, {"empty", ""}},
		Graph: Graph{
			Name: "g",
			Nodes: []Node{{
				Op: "Gemm", Name: "n", Inputs: []string{"x", "w", ""}, Outputs: []string{"y"}, Domain: "other",
				Attributes: []Attribute{
					{Name: "f", Kind: KindFloat, Float: -0.5}, {Name: "i", Kind: KindInt, Int: -3},
					{Name: "s", Kind: KindString, Text: "é"},
					{Name: "t", Kind: KindTensor, Tensor: &Tensor{Type: Int32, Shape: []int{2}, Ints: []int64{-1, 1 << 30}}},
					{Name: "fs", Kind: KindFloats, Floats: []float32{1, 2}}, {Name: "is", Kind: KindInts, Ints: []int64{1, -1}},
					{Name: "ss", Kind: KindStrings, Strings: []string{"a", ""}},
				},
			}},
			Tensors: []Tensor{
				{Name: "w", Type: Float32, Shape: []int{2, 1}, Floats: []float32{1.5, -2}},
				{Name: "d", Type: Float64, Shape: []int{1}, Doubles: []float64{1e300}},
				{Name: "l", Type: Int64, Ints: []int64{-1 << 62}},
				{Name: "b", Type: Bool, Shape: []int{3}, Ints: []int64{1, 0, 1}},
				{Name: "u", Type: Uint8, Shape: []int{1}, Ints: []int64{255}},
				{Name: "c", Type: Int8, Shape: []int{1}, Ints: []int64{-128}},
			},
			Inputs: []Value{
				{Name: "x", Type: Float32, Known: true, Shape: []int{-1, 2}, Dims: []string{"N", ""}},
				{Name: "z", Type: Bool},
			},
			Outputs: []Value{{Name: "y", Type: Float32, Known: true, Shape: []int{-1, 1}, Dims: []string{"", ""}}},
		},
	}
}

func TestModelsAreReadAsTheyWereWritten(t *testing.T) {
	b := small().Encode()
	m, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if want := small(); !reflect.DeepEqual(m, want) {
		t.Errorf("read\n%+v\nwant\n%+v", m, want)
	}
	if !bytes.Equal(m.Encode(), b) {
		t.Error("a model that was read is written in other bytes")
	}
	if got := m.Meta("k"); got != "v" {
		t.Errorf("metadata k is %q", got)
	}
	if got := m.Graph.Arguments(); len(got) != 2 {
		t.Errorf("arguments %v", got)
	}
}

// What other programs write packed or one by one is the same.
func TestNumbersInOtherFieldsThanRawData(t *testing.T) {
	tensor := func(b []byte) []byte {
		b = append([]byte{}, b...)
		graph := within(nil, 5, text(b, 8, "t"))
		return within(within(number(nil, 1, 8), 7, graph), 8, opset("", 17))
	}
	for name, c := range map[string]struct {
		b    []byte
		want Tensor
	}{
		"packed int64": {within(number(number(nil, 1, 2), 2, 7), 7, []byte{5, 6}),
			Tensor{Type: Int64, Shape: []int{2}, Ints: []int64{5, 6}}},
		"single int64": {number(number(number(number(nil, 1, 2), 2, 7), 7, 5), 7, 6),
			Tensor{Type: Int64, Shape: []int{2}, Ints: []int64{5, 6}}},
		"bool as int32": {within(number(number(nil, 1, 2), 2, 9), 5, []byte{1, 0}),
			Tensor{Type: Bool, Shape: []int{2}, Ints: []int64{1, 0}}},
		"packed shape": {within(number(within(nil, 1, []byte{1, 2}), 2, 7), 7, []byte{5, 6}),
			Tensor{Type: Int64, Shape: []int{1, 2}, Ints: []int64{5, 6}}},
	} {
		m, err := Decode(tensor(c.b))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c.want.Name = "t"
		if got := m.Graph.Tensors[0]; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestEveryTruncationIsOneSentence(t *testing.T) {
	b := small().Encode()
	for n := range b {
		m, err := Decode(b[:n])
		if err == nil {
			continue // the end of a field is no fault by itself: metadata and opsets stand behind the graph
		}
		if m != nil || !errors.Is(err, ErrFormat) || strings.Contains(err.Error(), "\n") ||
			!strings.HasPrefix(err.Error(), "no ONNX model: ") {
			t.Fatalf("after %d bytes: %v, %v", n, m, err)
		}
	}
}

func TestWhatCannotBeReadIsNamed(t *testing.T) {
	change := func(f func(m *Model)) []byte {
		m := small()
		f(m)
		return m.Encode()
	}
	withTensor := func(b []byte) []byte {
		return within(within(number(nil, 1, 8), 7, within(nil, 5, b)), 8, opset("", 17))
	}
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"nothing":    {nil, "there is no graph in it"},
		"text":       {[]byte("submit_time,duration\n"), "truncated or damaged"},
		"no opset":   {change(func(m *Model) { m.Opset = 0 }), "names no version of the standard operators"},
		"old format": {change(func(m *Model) { m.IR = 2 }), "IR version 2"},
		"half floats": {withTensor(text(number(number(nil, 1, 1), 2, 10), 8, "h")),
			`tensor "h" has elements of type float16`},
		"external data": {withTensor(text(number(number(number(nil, 1, 1), 2, 1), 14, 1), 8, "e")),
			`tensor "e": its data lie in another file`},
		"short data": {withTensor(within(text(number(number(nil, 1, 3), 2, 1), 8, "s"), 9, make([]byte, 8))),
			`tensor "s" of type float32 and shape [3] has 8 bytes`},
		"no dimension": {withTensor(text(number(number(nil, 1, -1), 2, 1), 8, "m")),
			`tensor "m" has a dimension of -1, want 0 to 2147483647`},
		"dimensions": {withTensor(text(number(within(nil, 1, make([]byte, 17)), 2, 1), 8, "n")),
			`tensor "n" has 17 dimensions, want at most 16`},
		"huge shape": {withTensor(text(number(number(number(nil, 1, 1<<31-1), 1, 1<<31-1), 2, 1), 8, "w")),
			`tensor "w" of shape [2147483647 2147483647] has 0 elements`},
		"wrong kind": {number(number(nil, 1, 8), 7, 1), "a field has another kind"},
		"sparse":     {within(within(number(nil, 1, 8), 7, within(nil, 15, nil)), 8, opset("", 17)), "sparse tensors"},
	} {
		_, err := Decode(c.b)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A file of two gigabytes is refused by its size.
func TestLargeFilesAreNotRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "large.onnx")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(2<<30), f.Close()); err != nil { // without data on the disk
		t.Skip(err)
	}
	if _, err := ReadFile(name); err == nil ||
		!strings.Contains(err.Error(), "it has 2147483648 bytes, want at most 536870912") {
		t.Error(err)
	}
	if _, err := ReadFile(t.TempDir()); err == nil {
		t.Error("a folder was read")
	}
}

func TestLenByHand(t *testing.T) {
	for _, c := range []struct {
		shape []int
		want  int
	}{{nil, 1}, {[]int{3, 4}, 12}, {[]int{3, 0}, 0}, {[]int{-1, 4}, -1}, {[]int{1 << 20, 1 << 20}, -1}} {
		if got := Len(c.shape); got != c.want {
			t.Errorf("Len(%v) = %d, want %d", c.shape, got, c.want)
		}
	}
}

func TestDamagedBytesNeverPanic(t *testing.T) {
	b := small().Encode()
	rapid.Check(t, func(t *rapid.T) {
		x := bytes.Clone(b)
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			x[rapid.IntRange(0, len(x)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		if m, err := Decode(x); err == nil {
			m.Encode()
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(small().Encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			if m != nil || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%v, %q", m, err)
			}
			return
		}
		again, err := Decode(m.Encode())
		if err != nil {
			t.Fatalf("a model that was read cannot be read again: %v", err)
		}
		again.Encode()
	})
}
