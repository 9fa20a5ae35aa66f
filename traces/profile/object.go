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

// object walks a JSON document in the order of the file and knows its current line and keys.
type object struct {
	file string
	data []byte
	dec  *json.Decoder
	path []string // keys, outermost first
}

func newObject(data []byte, file string) *object {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	d := &object{file: file, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	d.dec.UseNumber() // faults show values as written
	return d
}

// each calls fn once for every key of the next object; fn must consume the key's value. A repeated key is a fault,
// because Go and Python would keep different values.
func (d *object) each(what string, fn func(key string) error) error {
	if err := d.open('{', what); err != nil {
		return err
	}
	seen := map[string]bool{}
	for d.dec.More() {
		t, err := d.token()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok {
			return d.fault(fmt.Sprint(t), "a key")
		}
		d.path = append(d.path, key)
		if seen[key] {
			return d.fault(key, "each key once")
		}
		seen[key] = true
		if err := fn(key); err != nil {
			return err
		}
		d.path = d.path[:len(d.path)-1]
	}
	_, err := d.token() // the closing brace
	return err
}

// numbers reads a list of exactly len(dst) measurements.
func (d *object) numbers(dst []float64) error {
	want := fmt.Sprintf("a list of %d numbers", len(dst))
	if err := d.open('[', want); err != nil {
		return err
	}
	for i := range dst {
		if !d.dec.More() {
			return d.fault("]", want)
		}
		var err error
		if dst[i], err = d.number(); err != nil {
			return err
		}
	}
	if d.dec.More() {
		return d.fault("more numbers", want)
	}
	_, err := d.token()
	return err
}

// number reads a measurement.
func (d *object) number() (float64, error) {
	t, err := d.token()
	if err != nil {
		return 0, err
	}
	if n, ok := t.(json.Number); ok {
		if v, ok := measure(n.String()); ok {
			return v, nil
		}
	}
	return 0, d.fault(text(t), wantMeasure)
}

// end checks that the document ends here.
func (d *object) end() error {
	if t, err := d.dec.Token(); err == nil {
		return d.fault(text(t), "the end of the file")
	} else if err != io.EOF {
		return d.fault(err.Error(), "the end of the file")
	}
	return nil
}

func (d *object) open(delim json.Delim, what string) error {
	t, err := d.token()
	if err != nil {
		return err
	}
	if t != delim {
		return d.fault(text(t), what)
	}
	return nil
}

func (d *object) token() (json.Token, error) {
	t, err := d.dec.Token()
	switch {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return nil, d.fault("the end of the file", "a complete JSON document")
	case err != nil:
		return nil, d.fault(err.Error(), "a JSON document")
	}
	return t, nil
}

func (d *object) fault(value, want string) error {
	at := min(int(d.dec.InputOffset()), len(d.data))
	return &traces.RowError{File: d.file, Line: 1 + bytes.Count(d.data[:at], []byte{'\n'}), Column: strings.Join(d.path, " / "), Value: plain.Clip(value, 80), Want: want}
}

func text(t json.Token) string {
	if t == nil {
		return "null"
	}
	return fmt.Sprint(t)
}
