package configs

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Encode writes cfg as YAML: keys in the order of the struct's fields, map keys sorted. Fields tagged omitempty are
// left out when zero or, if they say so themselves (IsZero), when they have their default. DecodeBytes into the same
// defaults gives cfg again.
func Encode(cfg any) ([]byte, error) {
	// The nodes are built here, because the library writes some texts of several lines in a form that it cannot read.
	n, err := documentOf(cfg)
	if err != nil {
		return nil, err
	}
	return appendYAML(nil, n)
}

// appendYAML appends n as a document.
func appendYAML(text []byte, n *yaml.Node) ([]byte, error) {
	b := bytes.NewBuffer(text)
	e := yaml.NewEncoder(b)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(n), e.Close()); err != nil {
		return nil, fmt.Errorf("configs: %w", err)
	}
	return b.Bytes(), nil
}

// Whole is a configuration that Encode and JSON write for people: with the values that they otherwise leave out because
// they are defaults (IsZero), unless such a value is empty.
type Whole struct{ Config any }

// form is how values become nodes.
type form struct{ whole bool }

func documentOf(cfg any) (*yaml.Node, error) {
	w, whole := cfg.(Whole)
	if whole {
		cfg = w.Config
	}
	n, err := form{whole}.node(reflect.ValueOf(cfg))
	if err != nil {
		return nil, fmt.Errorf("configs: %w", err)
	}
	return n, nil
}

func (m form) node(v reflect.Value) (*yaml.Node, error) {
	switch v.Kind() {
	case reflect.Invalid:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: nullTag, Value: "null"}, nil
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return m.node(reflect.Value{})
		}
	default:
	}
	if n, ok, err := m.custom(v); ok {
		return n, err
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return m.node(v.Elem())
	case reflect.String:
		return textNode(v.String()), nil
	case reflect.Struct:
		return m.structure(v)
	case reflect.Map:
		return m.mapping(v)
	case reflect.Slice, reflect.Array:
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			n, err := m.node(v.Index(i))
			if err != nil {
				return nil, err
			}
			list.Content = append(list.Content, n)
		}
		return list, nil
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr, reflect.Float32, reflect.Float64:
		n := new(yaml.Node)
		err := n.Encode(v.Interface()) // also encodes time.Duration
		return n, err
	default:
		return nil, fmt.Errorf("YAML cannot hold a %v", v.Type())
	}
}

// customNode encodes types that encode themselves.
func (m form) custom(v reflect.Value) (n *yaml.Node, ok bool, err error) {
	if v.CanAddr() {
		v = v.Addr()
	}
	if !v.CanInterface() {
		return nil, false, nil
	}
	switch x := v.Interface().(type) {
	case yaml.Marshaler:
		y, err := x.MarshalYAML()
		if err != nil {
			return nil, true, err
		}
		n, err := m.node(reflect.ValueOf(y))
		return n, true, err
	case encoding.TextMarshaler:
		text, err := x.MarshalText()
		return textNode(string(text)), true, err
	}
	return nil, false, nil
}

// textNode quotes texts that span lines or have invisible characters.
func textNode(s string) *yaml.Node {
	if !utf8.ValidString(s) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!binary", Value: base64.StdEncoding.EncodeToString([]byte(s))}
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

func (m form) structure(v reflect.Value) (*yaml.Node, error) {
	out := &yaml.Node{Kind: yaml.MappingNode}
	names, byName := fields(v, false)
	for _, name := range names {
		f, opts := byName[name].value, byName[name].opts
		if strings.Contains(","+opts+",", ",omitempty,") && m.empty(f) {
			continue
		}
		n, err := m.node(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if strings.Contains(","+opts+",", ",flow,") {
			n.Style |= yaml.FlowStyle
		}
		out.Content = append(out.Content, textNode(name), n)
	}
	return out, nil
}

// empty reports whether omitempty leaves v out.
func (m form) empty(v reflect.Value) bool {
	if z, ok := v.Interface().(yaml.IsZeroer); ok {
		return z.IsZero() && (!m.whole || v.IsZero())
	}
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

func (m form) mapping(v reflect.Value) (*yaml.Node, error) {
	if v.Type().Key().Kind() != reflect.String {
		return nil, fmt.Errorf("YAML cannot hold a %v here, want texts as keys", v.Type())
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	out := &yaml.Node{Kind: yaml.MappingNode}
	for _, k := range keys {
		n, err := m.node(v.MapIndex(k))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		out.Content = append(out.Content, textNode(k.String()), n)
	}
	return out, nil
}
