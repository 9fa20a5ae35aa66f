package configs

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Encode writes cfg as YAML: keys in the order of the struct's fields, map keys sorted. Fields tagged omitempty are
// left out when zero, so they must have zero as their default. DecodeBytes into the same defaults gives cfg again.
func Encode(cfg any) ([]byte, error) {
	// The nodes are built here, because the library writes some texts of several lines in a form that it cannot read.
	n, err := nodeOf(reflect.ValueOf(cfg))
	if err != nil {
		return nil, fmt.Errorf("configs: %w", err)
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(n); err != nil {
		return nil, fmt.Errorf("configs: %w", err)
	}
	if err := e.Close(); err != nil {
		return nil, fmt.Errorf("configs: %w", err)
	}
	return b.Bytes(), nil
}

func nodeOf(v reflect.Value) (*yaml.Node, error) {
	switch v.Kind() {
	case reflect.Invalid:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: nullTag, Value: "null"}, nil
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nodeOf(reflect.Value{})
		}
	default:
	}
	if n, ok, err := customNode(v); ok {
		return n, err
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return nodeOf(v.Elem())
	case reflect.String:
		return textNode(v.String()), nil
	case reflect.Struct:
		return structNode(v)
	case reflect.Map:
		return mapNode(v)
	case reflect.Slice, reflect.Array:
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			n, err := nodeOf(v.Index(i))
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
func customNode(v reflect.Value) (n *yaml.Node, ok bool, err error) {
	if v.CanAddr() {
		v = v.Addr()
	}
	if !v.CanInterface() {
		return nil, false, nil
	}
	switch m := v.Interface().(type) {
	case yaml.Marshaler:
		x, err := m.MarshalYAML()
		if err != nil {
			return nil, true, err
		}
		n, err := nodeOf(reflect.ValueOf(x))
		return n, true, err
	case encoding.TextMarshaler:
		text, err := m.MarshalText()
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

func structNode(v reflect.Value) (*yaml.Node, error) {
	m := &yaml.Node{Kind: yaml.MappingNode}
	names, byName := fields(v, false)
	for _, name := range names {
		f, opts := byName[name].value, byName[name].opts
		if strings.Contains(","+opts+",", ",omitempty,") && empty(f) {
			continue
		}
		n, err := nodeOf(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if strings.Contains(","+opts+",", ",flow,") {
			n.Style |= yaml.FlowStyle
		}
		m.Content = append(m.Content, textNode(name), n)
	}
	return m, nil
}

// empty reports whether omitempty leaves v out.
func empty(v reflect.Value) bool {
	if z, ok := v.Interface().(yaml.IsZeroer); ok {
		return z.IsZero()
	}
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

func mapNode(v reflect.Value) (*yaml.Node, error) {
	if v.Type().Key().Kind() != reflect.String {
		return nil, fmt.Errorf("YAML cannot hold a %v here, want texts as keys", v.Type())
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	m := &yaml.Node{Kind: yaml.MappingNode}
	for _, k := range keys {
		n, err := nodeOf(v.MapIndex(k))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		m.Content = append(m.Content, textNode(k.String()), n)
	}
	return m, nil
}
