package profile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"clustergym/internal/plain"
	"clustergym/traces"
)

// object walks a JSON document in the order of the file and knows its current line and keys. It keeps the first fault,
// after which nothing is read any more and numbers are 0.
type object struct {
	file string
	data []byte
	dec  *json.Decoder
	path []string // keys, outermost first
	err  error
}

func newObject(data []byte, file string) *object {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	d := &object{file: file, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	d.dec.UseNumber() // faults show values as written
	return d
}

// each calls fn once for every key of the next object; fn must consume the key's value. A repeated key is a fault,
// because Go and Python would keep different values.
func (d *object) each(what string, fn func(key string)) {
	d.open('{', what)
	seen := map[string]bool{}
	for d.err == nil && d.dec.More() {
		t := d.token()
		key, ok := t.(string)
		if !ok {
			d.fail(fmt.Sprint(t), "a key")
		}
		d.path = append(d.path, key)
		if seen[key] {
			d.fail(key, "each key once")
		}
		if seen[key] = true; d.err != nil {
			return
		}
		fn(key)
		d.path = d.path[:len(d.path)-1]
	}
	d.token() // the closing brace
}

// numbers reads a list of exactly len(dst) measurements.
func (d *object) numbers(dst []float64) {
	want := fmt.Sprintf("a list of %d numbers", len(dst))
	d.open('[', want)
	for i := range dst {
		if d.err == nil && !d.dec.More() {
			d.fail("]", want)
		}
		dst[i] = d.number()
	}
	if d.err == nil && d.dec.More() {
		d.fail("more numbers", want)
	}
	d.token()
}

// number reads a measurement.
func (d *object) number() float64 {
	t := d.token()
	if n, ok := t.(json.Number); ok {
		if v, ok := measure(n.String()); ok {
			return v
		}
	}
	d.fail(text(t), wantMeasure)
	return 0
}

// end returns the first fault; it is one if the document does not end here.
func (d *object) end() error {
	if d.err == nil {
		if t, err := d.dec.Token(); err == nil {
			d.fail(text(t), "the end of the file")
		} else if err != io.EOF {
			d.fail(err.Error(), "the end of the file")
		}
	}
	return d.err
}

func (d *object) open(delim json.Delim, what string) {
	if t := d.token(); t != delim {
		d.fail(text(t), what)
	}
}

func (d *object) token() json.Token {
	if d.err != nil {
		return nil
	}
	t, err := d.dec.Token()
	switch {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		d.fail("the end of the file", "a complete JSON document")
	case err != nil:
		d.fail(err.Error(), "a JSON document")
	}
	return t
}

func (d *object) fail(value, want string) {
	if d.err == nil {
		at := min(int(d.dec.InputOffset()), len(d.data))
		d.err = &traces.RowError{File: d.file, Line: 1 + bytes.Count(d.data[:at], []byte{'\n'}),
			Column: strings.Join(d.path, " / "), Value: plain.Clip(value, 80), Want: want}
	}
}

func text(t json.Token) string {
	if t == nil {
		return "null"
	}
	return fmt.Sprint(t)
}
