package nets

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// The safetensors format has three parts. The first eight bytes are the length of the header as a little-endian
// integer. The header is a JSON object from tensor names to dtype, shape and byte range, padded with spaces so that
// the data start at a multiple of 8. The data follow, contiguous. "__metadata__" maps strings to strings.
const metaKey = "__metadata__"

// ErrFormat is returned for bytes that are not a well-formed safetensors file.
var ErrFormat = errors.New("nets: not a valid safetensors file")

// WriteTo writes p in the safetensors format, tensors sorted by name: equal parameters give equal bytes. Shapes
// are as in Views, so a dense layer's weight is [in, out], the transpose of PyTorch's.
func (p *Params) WriteTo(w io.Writer) (int64, error) { return WriteTensors(w, nil, p.Views) }

// ReadFrom reads p from a safetensors file that must hold exactly p's tensors, by name and shape, as float32 ("F32"),
// and nothing else after them; it reads to the end of r. A tensor that is missing, unknown or of another shape gives
// an error that wraps ErrShape and names it; malformed bytes give an error that wraps ErrFormat. After an error p is
// unchanged. Memory is bounded by the sizes of p and of the data that r delivers, not by what the header claims.
func (p *Params) ReadFrom(r io.Reader) (int64, error) {
	_, n, err := ReadTensors(r, p.Views)
	return n, err
}

// WriteTensors writes tensors as one safetensors file with the given metadata (nil = none). The order of the
// tensors and of the metadata's keys does not change the bytes.
func WriteTensors(w io.Writer, meta map[string]string, tensors []View) (int64, error) {
	order := byName(tensors)
	var h bytes.Buffer
	h.WriteByte('{')
	if len(meta) > 0 {
		text, err := json.Marshal(meta) // sorts its keys
		if err != nil {
			return 0, fmt.Errorf("nets: metadata: %w", err)
		}
		fmt.Fprintf(&h, "%q:%s", metaKey, text)
	}
	at := 0
	for i, k := range order {
		v := &tensors[k]
		if i > 0 && v.Name == tensors[order[i-1]].Name || v.Name == metaKey {
			return 0, fmt.Errorf("nets: tensor name %q is taken", v.Name)
		}
		if v.Size() != len(v.Data) {
			return 0, fmt.Errorf("%w: tensor %q has %d elements and shape %v", ErrShape, v.Name, len(v.Data), v.Shape)
		}
		name, err := json.Marshal(v.Name)
		if err != nil {
			return 0, fmt.Errorf("nets: tensor %q: %w", v.Name, err)
		}
		if h.Len() > 1 {
			h.WriteByte(',')
		}
		shape := strings.ReplaceAll(fmt.Sprint(v.Shape), " ", ",")
		fmt.Fprintf(&h, `%s:{"dtype":"F32","shape":%s,"data_offsets":[%d,%d]}`, name, shape, at, at+4*len(v.Data))
		at += 4 * len(v.Data)
	}
	h.WriteByte('}')
	for h.Len()%8 != 0 {
		h.WriteByte(' ')
	}
	var written int64
	put := func(b []byte) error {
		n, err := w.Write(b)
		written += int64(n)
		return err
	}
	if err := put(binary.LittleEndian.AppendUint64(nil, uint64(h.Len()))); err != nil {
		return written, err
	}
	if err := put(h.Bytes()); err != nil {
		return written, err
	}
	buf := make([]byte, 0, 1<<16)
	for _, k := range order {
		for _, x := range tensors[k].Data {
			buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(x))
			if len(buf) == cap(buf) {
				if err := put(buf); err != nil {
					return written, err
				}
				buf = buf[:0]
			}
		}
	}
	return written, put(buf)
}

// ReadTensors reads a safetensors file into the Data of tensors, which it must match exactly, and returns the file's
// metadata (nil when it has none). Errors and bounds are those of Params.ReadFrom; on an error nothing changes.
func ReadTensors(r io.Reader, tensors []View) (meta map[string]string, n int64, err error) {
	in := &counter{r: r}
	meta, err = readTensors(in, tensors)
	return meta, in.n, err
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

func readTensors(r io.Reader, tensors []View) (map[string]string, error) {
	var size [8]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, fmt.Errorf("%w: length of the header: %w", ErrFormat, err)
	}
	// A header that matches has a known number of entries: 64 KiB for metadata and spaces, and for each tensor its
	// name (six bytes for each one if escaped) and 256 bytes. This also bounds how much is read before the check.
	limit := uint64(1 << 16)
	for i := range tensors {
		limit += uint64(6*len(tensors[i].Name) + 256)
	}
	length := binary.LittleEndian.Uint64(size[:])
	if length > limit {
		return nil, fmt.Errorf("%w: header of %d bytes, at most %d expected", ErrFormat, length, limit)
	}
	header := make([]byte, length)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, fmt.Errorf("%w: header: %w", ErrFormat, err)
	}
	entries, meta, err := parseHeader(header)
	if err != nil {
		return nil, err
	}
	order, total, err := match(entries, tensors)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, int64(total)+1)) // one byte more, to detect surplus data
	if err != nil {
		return nil, fmt.Errorf("nets: data: %w", err)
	}
	if len(data) != total {
		return nil, fmt.Errorf("%w: %d bytes of data or more, want %d", ErrFormat, len(data), total)
	}
	for i, k := range order {
		at := entries[i].Offsets[0]
		d := tensors[k].Data
		for j := range d {
			d[j] = math.Float32frombits(binary.LittleEndian.Uint32(data[at+4*j:]))
		}
	}
	return meta, nil
}

// entry is one tensor of the header.
type entry struct {
	Name    string
	Dtype   string
	Shape   []int
	Offsets [2]int
}

// parseHeader reads the header's JSON. It walks the outermost object itself because encoding/json would keep
// the last of two equal names silently.
func parseHeader(header []byte) ([]entry, map[string]string, error) {
	bad := func(err error) ([]entry, map[string]string, error) {
		return nil, nil, fmt.Errorf("%w: header: %w", ErrFormat, err)
	}
	var entries []entry
	var meta map[string]string
	d := json.NewDecoder(bytes.NewReader(header))
	if t, err := d.Token(); err != nil {
		return bad(err)
	} else if t != json.Delim('{') {
		return bad(fmt.Errorf("begins with %v, want an object", t))
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return bad(err)
		}
		name, ok := t.(string)
		if !ok || seen[name] {
			return bad(fmt.Errorf("key %v is no string or stands there twice", t))
		}
		seen[name] = true
		if name == metaKey {
			if err := d.Decode(&meta); err != nil {
				return bad(err)
			}
			continue
		}
		var e struct {
			Dtype   *string `json:"dtype"`
			Shape   *[]int  `json:"shape"`
			Offsets *[]int  `json:"data_offsets"`
		}
		if err := d.Decode(&e); err != nil {
			return bad(fmt.Errorf("tensor %q: %w", name, err))
		}
		if e.Dtype == nil || e.Shape == nil || e.Offsets == nil || len(*e.Offsets) != 2 {
			return bad(fmt.Errorf("tensor %q: dtype, shape and two data_offsets are needed", name))
		}
		entries = append(entries, entry{name, *e.Dtype, *e.Shape, [2]int(*e.Offsets)})
	}
	if _, err := d.Token(); err != nil {
		return bad(err)
	}
	if rest := strings.TrimRight(string(header[d.InputOffset():]), " "); rest != "" {
		return bad(fmt.Errorf("%q after the object", rest))
	}
	return entries, meta, nil
}

// match checks the header against tensors. It sorts entries by offset and returns for each the index of its tensor,
// and the total number of bytes of data.
func match(entries []entry, tensors []View) (order []int, total int, err error) {
	index := make(map[string]int, len(tensors))
	for i := range tensors {
		index[tensors[i].Name] = i
	}
	found := make([]bool, len(tensors))
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.Offsets[0], b.Offsets[0]), strings.Compare(a.Name, b.Name))
	})
	for i := range entries {
		e := &entries[i]
		k, ok := index[e.Name]
		if !ok {
			return nil, 0, fmt.Errorf("%w: unknown tensor %q", ErrShape, e.Name)
		}
		found[k] = true
		if !slices.Equal(e.Shape, tensors[k].Shape) {
			return nil, 0, fmt.Errorf("%w: tensor %q: got shape %v, want %v", ErrShape, e.Name, e.Shape, tensors[k].Shape)
		}
		if e.Dtype != "F32" {
			return nil, 0, fmt.Errorf("%w: tensor %q: got dtype %q, want \"F32\"", ErrShape, e.Name, e.Dtype)
		}
		order = append(order, k)
	}
	for k := range tensors { // before the offsets: a missing tensor is the likelier cause of a gap
		if !found[k] {
			return nil, 0, fmt.Errorf("%w: tensor %q (shape %v) is missing", ErrShape, tensors[k].Name, tensors[k].Shape)
		}
	}
	for i, k := range order {
		e := &entries[i]
		if want := [2]int{total, total + 4*len(tensors[k].Data)}; e.Offsets != want {
			return nil, 0, fmt.Errorf("%w: tensor %q: got data_offsets %v, want %v", ErrFormat, e.Name, e.Offsets, want)
		}
		total = e.Offsets[1]
	}
	return order, total, nil
}

// byName returns the indices of tensors in the order of their names.
func byName(tensors []View) []int {
	order := make([]int, len(tensors))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(tensors[a].Name, tensors[b].Name) })
	return order
}
