package configs

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"clustergym/internal/fault"
)

// Presets holds the built-in configurations: runs at the top, clusters below clusters/.
//
//go:embed *.yaml clusters/*.yaml
var Presets embed.FS

// Validator is a configuration: a pointer to a struct that can check itself. Validate returns all faults, joined, each
// a *fault.Fault if it can name a key.
type Validator interface{ Validate() error }

// Error is one fault of a file.
type Error struct {
	File string
	Line int   // 0 = the file does not have that key
	Err  error // a *fault.Fault if a value is at fault
}

func (e *Error) Error() string {
	switch {
	case e.File == "":
		return e.Err.Error()
	case e.Line == 0:
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Decode reads the one YAML document of file name into cfg, a pointer to a struct that already holds the
// defaults, and validates the result. See DecodeBytes.
func Decode(fsys fs.FS, name string, cfg Validator) error {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	return DecodeBytes(name, data, cfg)
}

// DecodeBytes is Decode for data in memory; errors give name as the file.
//
// Keys are those of yaml tags. The keys of an inlined struct stand among those around it; so do those of an inlined
// interface that holds a pointer to a struct, which is copied before it is changed. Keys that the document does not
// have keep their defaults, and so do empty sections. Lists and maps replace the default as a whole, and empty ones
// become nil. time.Duration is written "40s", "1h30m". Types with UnmarshalText or UnmarshalYAML decode themselves.
// Anchors, aliases and merge keys work. An empty document gives the defaults.
//
// Faults are *Errors, joined, in order of lines: unknown keys with the nearest known one, keys given twice, values of
// the wrong type, and everything that Validate finds in the values that could be read. On any fault cfg is unchanged.
func DecodeBytes(name string, data []byte, cfg Validator) error {
	doc, err := parse(data)
	if err != nil {
		return located(name, err)
	}
	return decode(name, doc, cfg)
}

// decode reads doc, nil for an empty one, into cfg.
func decode(name string, doc *yaml.Node, cfg Validator) error {
	target, err := structOf(cfg)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	work := reflect.New(target.Type())
	work.Elem().Set(target)
	d := newDecoder()
	if doc != nil {
		d.value("", doc, work.Elem(), 0)
	}
	if len(d.errs) < maxFaults {
		d.validate(work.Interface().(Validator).Validate())
	} else {
		d.errs = append(d.errs, &Error{Err: fmt.Errorf("more than %d faults; the rest is left out", maxFaults)})
	}
	if len(d.errs) == 0 {
		target.Set(work.Elem())
		return nil
	}
	slices.SortStableFunc(d.errs, func(a, b *Error) int {
		if (a.Line == 0) != (b.Line == 0) {
			return b.Line - a.Line // faults without a line come last
		}
		return a.Line - b.Line
	})
	errs := make([]error, len(d.errs))
	for i, e := range d.errs {
		e.File = name
		errs[i] = e
	}
	return errors.Join(errs...)
}

// Keys returns the paths of the keys and list elements that the document of file name gives, sorted, as Set writes
// them: "env", "env.window", "racks[0]". cfg is what the document would be decoded into; it is not changed. Faults of
// the document are left out: Decode reports them.
func Keys(name string, data []byte, cfg Validator) ([]string, error) {
	doc, err := parse(data)
	if err != nil {
		return nil, located(name, err)
	}
	target, err := structOf(cfg)
	if err != nil || doc == nil {
		return nil, err
	}
	work := reflect.New(target.Type())
	work.Elem().Set(target)
	d := newDecoder()
	d.value("", doc, work.Elem(), 0)
	return slices.Sorted(maps.Keys(d.lines)), nil
}

// DecodeKeys is Decode for the named keys only: it ignores the document's other top-level keys.
func DecodeKeys(fsys fs.FS, name string, cfg Validator, keys ...string) error {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	doc, err := parse(data)
	if err != nil {
		return located(name, err)
	}
	if doc != nil && doc.Kind == yaml.MappingNode {
		var kept []*yaml.Node
		for i := 0; i+1 < len(doc.Content); i += 2 {
			if slices.Contains(keys, doc.Content[i].Value) {
				kept = append(kept, doc.Content[i], doc.Content[i+1])
			}
		}
		doc.Content = kept
	}
	return decode(name, doc, cfg)
}

// Text returns the single value at the end of path, as "env", "id", in the document of a file, and "" if the document
// has none. Nothing else of the document is looked at.
func Text(fsys fs.FS, name string, path ...string) (string, error) {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return "", err
	}
	return TextBytes(name, data, path...)
}

// TextBytes is Text for data in memory; errors give name as the file.
func TextBytes(name string, data []byte, path ...string) (string, error) {
	at, err := parse(data)
	if err != nil {
		return "", located(name, err)
	}
	for _, key := range path {
		at = child(at, key)
	}
	if at == nil || at.Kind != yaml.ScalarNode || at.ShortTag() == nullTag {
		return "", nil
	}
	return at.Value, nil
}

// child returns the value of key in the mapping n, looking through aliases and merge keys, or nil.
func child(n *yaml.Node, key string) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	var merged *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if v.Kind == yaml.AliasNode {
			v = v.Alias
		}
		switch {
		case k.Value == key:
			return v
		case k.ShortTag() == mergeTag && merged == nil:
			merged = child(v, key)
		}
	}
	return merged
}

// Runs returns the names of the embedded runs, sorted.
func Runs() []string {
	entries, err := Presets.ReadDir(".")
	if err != nil {
		panic(fmt.Sprintf("configs: embedded presets: %v", err)) // embedded files can always be read
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".yaml"); ok && !e.IsDir() {
			names = append(names, name)
		}
	}
	slices.Sort(names) // files are sorted by their whole names
	return names
}

// Own replaces the configuration that cfg holds by a copy, so that changing it changes no other configuration that
// shares it. Lists and maps inside stay shared.
func Own(cfg *Validator) error {
	from, err := structOf(*cfg)
	if err != nil {
		return err
	}
	own := reflect.New(from.Type())
	own.Elem().Set(from)
	*cfg = own.Interface().(Validator)
	return nil
}

// structOf returns the struct that cfg points to.
func structOf(cfg any) (reflect.Value, error) {
	v := reflect.ValueOf(cfg)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return reflect.Value{}, fmt.Errorf("configs: cannot decode into a %T, want a pointer to a struct", cfg)
	}
	return v.Elem(), nil
}

// parse returns the content of the only document, or nil if there is none.
func parse(data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	for { // empty documents may follow, of a --- at the end
		if err := dec.Decode(&more); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if len(more.Content) > 0 && more.Content[0].ShortTag() != nullTag {
			return nil, &Error{Line: more.Content[0].Line, Err: errors.New("got a second document, want one in a file")}
		}
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) == 0 || doc.Content[0].ShortTag() == nullTag {
		return nil, nil
	}
	return doc.Content[0], nil
}

var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?((?s).*)$`)

// located converts the library's error, with its line, to an *Error.
func located(file string, err error) error {
	var e *Error
	if errors.As(err, &e) {
		return &Error{File: file, Line: e.Line, Err: e.Err}
	}
	if m := yamlError.FindStringSubmatch(err.Error()); m != nil {
		line, _ := strconv.Atoi(m[1]) // digits or nothing
		return &Error{File: file, Line: line, Err: errors.New("not YAML: " + m[2])}
	}
	return fmt.Errorf("%s: %w", file, err)
}

// validate adds the faults that a Validate method returned, except those that follow from values that could not be
// read.
func (d *decoder) validate(err error) {
	for _, leaf := range leaves(err) {
		var f *fault.Fault
		if !errors.As(leaf, &f) {
			d.errs = append(d.errs, &Error{Err: leaf})
			continue
		}
		if !d.follows(f.Key) {
			d.errs = append(d.errs, &Error{Line: d.line(f.Key), Err: f})
		}
	}
}

// leaves splits joined errors.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range j.Unwrap() {
			all = append(all, leaves(e)...)
		}
		return all
	}
	// The faults say more than an error that wraps several of them.
	if all := fault.All(err); len(all) > 0 {
		errs := make([]error, len(all))
		for i, f := range all {
			errs[i] = f
		}
		return errs
	}
	return []error{err}
}
