package nets

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func encode(t *testing.T, p *Params) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := p.WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("WriteTo: %d of %d bytes, %v", n, b.Len(), err)
	}
	return b.Bytes()
}

// file joins a header and data into a file.
func file(header string, data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func TestSafetensorsBytes(t *testing.T) {
	got := encode(t, sample())
	header := `{"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"scale":{"dtype":"F32","shape":[],"data_offsets":[12,16]},` +
		`"trunk.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[16,40]}}`
	for len(header)%8 != 0 {
		header += " "
	}
	var data []byte
	for _, x := range []float32{3.5, 4.5, 5.5, 6.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5} {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	if want := file(header, data); !bytes.Equal(got, want) {
		t.Errorf("file is\n%q\nwant\n%q", got, want)
	}
}

func TestSafetensorsRoundTripKeepsEveryBit(t *testing.T) {
	p := NewParams([]View{{Name: "z \"quoted\" <ü>", Shape: []int{20000}}, {Name: "a", Shape: []int{1, 1, 4}}})
	copy(p.Data, []float32{float32(math.Inf(1)), math.Float32frombits(0x7fc00001), float32(math.Copysign(0, -1)), 1e-45})
	p.Data[20003] = -7
	b := encode(t, p)
	q := p.Like()
	// One reader returns a byte at a time, the other returns data and EOF together.
	for _, r := range []io.Reader{iotest.OneByteReader(bytes.NewReader(b)), iotest.DataErrReader(bytes.NewReader(b))} {
		q.Zero()
		n, err := q.ReadFrom(r)
		if err != nil || n != int64(len(b)) {
			t.Fatalf("ReadFrom: %d bytes, %v", n, err)
		}
		for i := range p.Data {
			if math.Float32bits(p.Data[i]) != math.Float32bits(q.Data[i]) {
				t.Fatalf("element %d = %v, want %v", i, q.Data[i], p.Data[i])
			}
		}
	}
	if !bytes.Equal(b, encode(t, q)) {
		t.Error("written again, the bytes differ")
	}
}

func TestOtherWritersOrderAndMetadataAreRead(t *testing.T) {
	data := make([]byte, 40)
	binary.LittleEndian.PutUint32(data, math.Float32bits(8))
	p := sample()
	n, err := p.ReadFrom(bytes.NewReader(file(`{ "__metadata__": {"format": "pt"},
		"trunk.weight": {"shape": [2, 3], "data_offsets": [0, 24], "dtype": "F32"},
		"scale": {"dtype": "F32", "data_offsets": [36, 40], "shape": []},
		"bias": {"dtype": "F32", "data_offsets": [24, 36], "shape": [3]}}  `, data)))
	if err != nil || n == 0 || p.Data[0] != 8 || p.Data[1] != 0 {
		t.Errorf("%v, %v", p.Data, err)
	}
	var b bytes.Buffer
	if _, err := WriteTensors(&b, map[string]string{"step": "12"}, p.Views); err != nil {
		t.Fatal(err)
	}
	meta, _, err := ReadTensors(&b, p.Views)
	if err != nil || meta["step"] != "12" || len(meta) != 1 {
		t.Errorf("metadata %v, %v", meta, err)
	}
}

func TestTensorsThatCannotBeWritten(t *testing.T) {
	for _, views := range [][]View{
		{{Name: "a", Shape: []int{2}, Data: make([]float32, 1)}},
		{{Name: "a", Shape: []int{1}, Data: make([]float32, 1)}, {Name: "a", Shape: []int{1}, Data: make([]float32, 1)}},
		{{Name: "__metadata__", Shape: []int{1}, Data: make([]float32, 1)}},
	} {
		if _, err := WriteTensors(io.Discard, nil, views); err == nil {
			t.Errorf("%v: no error", views)
		}
	}
	for limit := int64(0); limit < 100; limit += 9 {
		if _, err := sample().WriteTo(&failing{limit}); err == nil {
			t.Errorf("no error from a writer that fails after %d bytes", limit)
		}
	}
}

type failing struct{ left int64 }

func (f *failing) Write(b []byte) (int, error) {
	if f.left -= int64(len(b)); f.left < 0 {
		return 0, errors.New("disk full")
	}
	return len(b), nil
}

const (
	goodTrunk = `"trunk.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[16,40]}`
	goodBias  = `"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}`
	goodScale = `"scale":{"dtype":"F32","shape":[],"data_offsets":[12,16]}`
)

func TestHostileFilesAreErrorsAndChangeNothing(t *testing.T) {
	data := bytes.Repeat([]byte{1}, 40)
	join := func(parts ...string) string { return "{" + strings.Join(parts, ",") + "}" }
	huge := binary.LittleEndian.AppendUint64(nil, 1<<62)
	for _, c := range []struct {
		name string
		in   []byte
		is   error
		want string
	}{
		{"empty", nil, ErrFormat, "length"},
		{"short length", []byte{1, 2}, ErrFormat, "length"},
		{"endless header", append(huge, "{}"...), ErrFormat, "header of 4611686018427387904 bytes"},
		{"header longer than the file", file("", nil)[:0:0], ErrFormat, ""},
		{"no JSON", file("hello!!!", data), ErrFormat, "header"},
		{"an array", file("[]", data), ErrFormat, "object"},
		{"cut JSON", file(`{"bias":{"dtype"`, data), ErrFormat, "header"},
		{"text after the object", file(join(goodTrunk, goodBias, goodScale)+"x", data), ErrFormat, `"x"`},
		{"a name twice", file(join(goodTrunk, goodBias, goodScale, goodBias), data), ErrFormat, "twice"},
		{"missing keys", file(join(goodTrunk, goodBias, `"scale":{"dtype":"F32"}`), data), ErrFormat, `"scale"`},
		{"three offsets", file(join(goodTrunk, goodBias, `"scale":{"dtype":"F32","shape":[],"data_offsets":[1,2,3]}`), data),
			ErrFormat, `"scale"`},
		{"an entry of the wrong type", file(join(goodTrunk, goodBias, `"scale":7`), data), ErrFormat, `"scale"`},
		{"missing tensor", file(join(goodTrunk, goodBias), data), ErrShape, `"scale" (shape []) is missing`},
		{"unknown tensor",
			file(join(goodTrunk, goodBias, goodScale, `"extra":{"dtype":"F32","shape":[0],"data_offsets":[40,40]}`), data),
			ErrShape, `"extra"`},
		{"wrong shape", file(join(strings.Replace(goodTrunk, "2,3", "3,2", 1), goodBias, goodScale), data), ErrShape,
			`"trunk.weight": got shape [3 2], want [2 3]`},
		{"wrong type", file(join(strings.Replace(goodTrunk, "F32", "F16", 1), goodBias, goodScale), data), ErrShape,
			`got dtype "F16"`},
		{"overlap", file(join(goodTrunk, goodBias, strings.Replace(goodScale, "12,16", "8,12", 1)), data), ErrFormat,
			"data_offsets"},
		{"gap", file(join(goodTrunk, goodBias, strings.Replace(goodScale, "12,16", "20,24", 1)), data), ErrFormat,
			"data_offsets"},
		{"negative offset", file(join(goodTrunk, strings.Replace(goodBias, "0,12", "-4,8", 1), goodScale), data), ErrFormat,
			"data_offsets"},
		{"offset over all integers",
			file(join(goodTrunk, strings.Replace(goodBias, "0,12", "0,99999999999999999999", 1), goodScale), data), ErrFormat,
			`"bias"`},
		{"too little data", file(join(goodTrunk, goodBias, goodScale), data[:39]), ErrFormat, "39 bytes"},
		{"too much data", file(join(goodTrunk, goodBias, goodScale), append(data, 1)), ErrFormat, "41 bytes"},
		{"bad metadata", file(join(`"__metadata__":{"a":1}`, goodTrunk, goodBias, goodScale), data), ErrFormat, "header"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := sample()
			before := slices.Clone(p.Data)
			_, err := p.ReadFrom(bytes.NewReader(c.in))
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %v with %q", err, c.is, c.want)
			}
			if !slices.Equal(before, p.Data) {
				t.Error("parameters changed")
			}
		})
	}
	broken := errors.New("broken pipe")
	for cut := range encode(t, sample()) {
		p := sample()
		if _,
			err := p.ReadFrom(io.MultiReader(bytes.NewReader(encode(t, p)[:cut]), iotest.ErrReader(broken))); !errors.Is(err,
			broken) {
			t.Fatalf("reader that breaks after %d bytes: %v", cut, err)
		}
	}
}

func FuzzReadFrom(f *testing.F) {
	var b bytes.Buffer
	if _, err := sample().WriteTo(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(file("{"+goodTrunk+","+goodBias+","+goodScale+"}", make([]byte, 40)))
	f.Add(file(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,-4]}}`, nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		p := sample()
		before := slices.Clone(p.Data)
		if _, err := p.ReadFrom(bytes.NewReader(in)); err != nil {
			if !slices.Equal(before, p.Data) {
				t.Fatal("an error changed the parameters")
			}
			return
		}
		// What was read can be written and read again.
		q := p.Like()
		var b bytes.Buffer
		if _, err := p.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := q.ReadFrom(&b); err != nil {
			t.Fatal(err)
		}
		for i := range p.Data {
			if math.Float32bits(p.Data[i]) != math.Float32bits(q.Data[i]) {
				t.Fatalf("element %d: %v became %v", i, p.Data[i], q.Data[i])
			}
		}
	})
}
