package configs

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Change is a value in which two configurations differ.
type Change struct {
	Key  string `json:"key"`  // path, as Set writes it
	From string `json:"from"` // YAML in one line; "" = the key is not there
	To   string `json:"to"`
}

// String returns the change as "key: from → to".
func (c Change) String() string {
	show := func(s string) string {
		if s == "" {
			return "nothing"
		}
		return short(s)
	}
	return fmt.Sprintf("%s: %s → %s", c.Key, show(c.From), show(c.To))
}

// Diff returns the changes that lead from one value to another of the same type, in the order of their fields. Lists
// are compared element by element if they are of one length, or if one is the beginning of the other; otherwise they
// differ as a whole.
func Diff(from, to any) ([]Change, error) {
	a, err := documentOf(Whole{from})
	if err != nil {
		return nil, err
	}
	b, err := documentOf(Whole{to})
	if err != nil {
		return nil, err
	}
	return diff(nil, "", a, b), nil
}

func diff(all []Change, key string, a, b *yaml.Node) []Change {
	switch {
	case a != nil && b != nil && a.Kind == yaml.MappingNode && b.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(a.Content); i += 2 {
			name := a.Content[i].Value
			all = diff(all, join(key, name), a.Content[i+1], child(b, name))
		}
		for i := 0; i+1 < len(b.Content); i += 2 {
			if name := b.Content[i].Value; child(a, name) == nil {
				all = diff(all, join(key, name), nil, b.Content[i+1])
			}
		}
	case a != nil && b != nil && alike(a, b):
		for i := range max(len(a.Content), len(b.Content)) {
			all = diff(all, fmt.Sprintf("%s[%d]", key, i), element(a, i), element(b, i))
		}
	default:
		if from, to := inline(a), inline(b); from != to {
			all = append(all, Change{key, from, to})
		}
	}
	return all
}

// alike reports whether a and b are lists that have as many elements, or of which one is the beginning of the other.
func alike(a, b *yaml.Node) bool {
	if a.Kind != yaml.SequenceNode || b.Kind != yaml.SequenceNode {
		return false
	}
	n := min(len(a.Content), len(b.Content))
	for i := 0; n < max(len(a.Content), len(b.Content)) && i < n; i++ {
		if inline(a.Content[i]) != inline(b.Content[i]) {
			return false
		}
	}
	return n > 0
}

// element returns element i of a list, nil if it has none.
func element(list *yaml.Node, i int) *yaml.Node {
	if i < len(list.Content) {
		return list.Content[i]
	}
	return nil
}

// inline returns n as YAML in one line, "" for nil.
func inline(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	var b bytes.Buffer
	if err := appendInline(&b, n); err != nil {
		return err.Error() // documentOf makes no such nodes
	}
	return b.String()
}

func appendInline(b *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(n.Content[i].Value + ": ")
			if err := appendInline(b, n.Content[i+1]); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, e := range n.Content {
			if i > 0 {
				b.WriteString(", ")
			}
			if err := appendInline(b, e); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	default:
		text, err := yaml.Marshal(n)
		b.WriteString(strings.TrimSpace(string(text)))
		return err
	}
	return nil
}
