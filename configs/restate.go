package configs

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Restate writes own as YAML in the words of a file, of which own is a section that a user may have changed. recorded
// is what the section says.
//
//   - A value that is as recorded keeps the file's style.
//   - A key keeps its comment; where the section has none, it gets that of the same key in another section.
//   - A key that the section leaves out is in the words of parts, which are files by key.
//   - Inside a value, a key that the file leaves out is left out unless it differs from recorded.
//
// The text begins with the comment with which the file begins.
func Restate(file []byte, section string, parts map[string][]byte, recorded, own any) ([]byte, error) {
	doc, err := parse(file)
	if err != nil {
		return nil, fmt.Errorf("configs: %w", err)
	}
	a, err := documentOf(recorded)
	if err != nil {
		return nil, err
	}
	b, err := documentOf(own)
	if err != nil {
		return nil, err
	}
	says := cloned(cmp.Or(child(doc, section), &yaml.Node{Kind: yaml.MappingNode}))
	for _, key := range slices.Sorted(maps.Keys(parts)) {
		part, err := parse(parts[key])
		if err != nil {
			return nil, fmt.Errorf("configs: %s: %w", key, err)
		}
		if part != nil && child(says, key) == nil {
			says.Content = append(says.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, part)
		}
	}
	n := restated(says, a, b, true)
	for i := 0; doc != nil && i+1 < len(doc.Content); i += 2 {
		comment(n, child(doc, doc.Content[i].Value))
	}
	var head []byte
	for line := range bytes.Lines(file) {
		if line[0] != '#' {
			break
		}
		head = append(head, line...)
	}
	return appendYAML(head, n)
}

// restated returns b as a file says it. says is what the file has in b's place, nil = nothing, and a is what that was
// decoded into. Keys that the file leaves out are there if whole is true or they differ from a.
func restated(says, a, b *yaml.Node, whole bool) *yaml.Node {
	if says != nil && says.Kind == yaml.AliasNode {
		says = says.Alias
	}
	same := a != nil && inline(a) == inline(b)
	switch {
	case says != nil && same && !whole:
		return cloned(says)
	case says != nil && says.Kind == yaml.MappingNode && b.Kind == yaml.MappingNode:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: b.Tag, Style: says.Style}
		for i := 0; i+1 < len(b.Content); i += 2 {
			key, v := b.Content[i], b.Content[i+1]
			in, was := child(says, key.Value), child(a, key.Value)
			if in == nil && !whole && was != nil && inline(was) == inline(v) {
				continue
			}
			n.Content = append(n.Content, keyOf(says, key), restated(in, was, v, false))
		}
		return n
	case says != nil && says.Kind == yaml.SequenceNode && b.Kind == yaml.SequenceNode && a != nil &&
		len(a.Content) == len(b.Content) && len(says.Content) == len(b.Content):
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: b.Tag, Style: says.Style}
		for i := range b.Content {
			n.Content = append(n.Content, restated(says.Content[i], a.Content[i], b.Content[i], false))
		}
		return n
	}
	n := *b
	if says != nil {
		n.Style |= says.Style & yaml.FlowStyle
	} else if n.Kind == yaml.SequenceNode && !sections(&n) {
		n.Style |= yaml.FlowStyle
	}
	return &n
}

// sections reports whether n is a list whose elements are sections.
func sections(n *yaml.Node) bool {
	return n.Kind == yaml.SequenceNode && len(n.Content) > 0 &&
		!slices.ContainsFunc(n.Content, func(e *yaml.Node) bool { return e.Kind != yaml.MappingNode })
}

// cloned copies n without anchors and aliases.
func cloned(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	c := *n
	c.Anchor, c.Content = "", nil
	for _, e := range n.Content {
		c.Content = append(c.Content, cloned(e))
	}
	return &c
}

// keyOf returns key as the mapping says writes it, with its comments.
func keyOf(says, key *yaml.Node) *yaml.Node {
	for i := 0; i+1 < len(says.Content); i += 2 {
		if says.Content[i].Value == key.Value {
			return cloned(says.Content[i])
		}
	}
	c := *key
	return &c
}

// comment gives the keys of n without comments those that they have in from, which is another section.
func comment(n, from *yaml.Node) {
	if from == nil || n.Kind != yaml.MappingNode || from.Kind != yaml.MappingNode {
		return
	}
	line := func(key, value *yaml.Node) *string { // where the library keeps the comment behind a value
		if value.Kind == yaml.ScalarNode || value.Style&yaml.FlowStyle != 0 {
			return &value.LineComment
		}
		return &key.LineComment
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		for k := 0; k+1 < len(from.Content); k += 2 {
			if n.Content[i].Value != from.Content[k].Value {
				continue
			}
			if own, other := line(n.Content[i], n.Content[i+1]), line(from.Content[k], from.Content[k+1]); *own == "" {
				*own = *other
			}
			if n.Content[i].HeadComment == "" && k > 0 { // the first one's may be about the section
				n.Content[i].HeadComment = from.Content[k].HeadComment
			}
		}
	}
}
