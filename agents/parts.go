package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxJSON is the largest JSON part in bytes: JSON holds counters and streams, never data.
const maxJSON = 64 << 20

// ReadWriter is state that can write itself and read itself back.
type ReadWriter interface {
	io.WriterTo
	io.ReaderFrom
}

// NewPart returns state as a part of a checkpoint with that name.
func NewPart(name string, state ReadWriter) Part { return part{name, state} }

type part struct {
	name string
	ReadWriter
}

func (p part) Name() string { return p.name }

// NewWrittenPart returns a part that has been written already, as another rank's. It cannot be read back.
func NewWrittenPart(name string, content []byte) Part { return part{name, written(content)} }

type written []byte

func (w written) WriteTo(dst io.Writer) (int64, error) { return bytes.NewReader(w).WriteTo(dst) }

func (written) ReadFrom(io.Reader) (int64, error) {
	return 0, errors.New("agents: a part that only exists in writing cannot be read")
}

// NewJSONPart returns a part kept as JSON. save returns the value to write. load gets the value read and must check
// it before it changes anything. Unknown fields and trailing bytes are errors, and load is then not called.
func NewJSONPart[T any](name string, save func() (T, error), load func(T) error) Part {
	return &jsonPart[T]{name, save, load}
}

type jsonPart[T any] struct {
	name string
	save func() (T, error)
	load func(T) error
}

func (p *jsonPart[T]) Name() string { return p.name }

func (p *jsonPart[T]) WriteTo(w io.Writer) (int64, error) {
	v, err := p.save()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", p.name, err)
	}
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return 0, fmt.Errorf("%s: %w", p.name, err)
	}
	n, err := w.Write(append(data, '\n'))
	return int64(n), err
}

func (p *jsonPart[T]) ReadFrom(r io.Reader) (int64, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxJSON+1))
	n := int64(len(data))
	if err != nil {
		return n, fmt.Errorf("%s: %w", p.name, err)
	}
	if n > maxJSON {
		return n, fmt.Errorf("%s: more than %d bytes", p.name, maxJSON)
	}
	var v T
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return n, fmt.Errorf("%s: %w", p.name, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return n, fmt.Errorf("%s: something follows the JSON value", p.name)
	}
	if err := p.load(v); err != nil {
		return n, fmt.Errorf("%s: %w", p.name, err)
	}
	return n, nil
}
