package configs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// JSON is Encode as JSON: the same keys in the same order. Times are texts as in YAML, and so are numbers that JSON
// does not have.
func JSON(cfg any) (json.RawMessage, error) {
	n, err := documentOf(cfg)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := appendNode(&b, n); err != nil {
		return nil, fmt.Errorf("configs: %w", err)
	}
	return b.Bytes(), nil
}

func appendNode(b *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := appendJSON(b, n.Content[i].Value); err != nil {
				return err
			}
			b.WriteByte(':')
			if err := appendNode(b, n.Content[i+1]); err != nil {
				return err
			}
		}
		b.WriteByte('}')
		return nil
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, c := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := appendNode(b, c); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	}
	switch n.ShortTag() {
	case nullTag, "!!bool":
		b.WriteString(n.Value)
		return nil
	case "!!int":
		if json.Valid([]byte(n.Value)) {
			b.WriteString(n.Value)
			return nil
		}
	case "!!float":
		if v, err := strconv.ParseFloat(n.Value, 64); err == nil && !math.IsInf(v, 0) && !math.IsNaN(v) {
			return appendJSON(b, v)
		}
	}
	return appendJSON(b, n.Value)
}

// appendJSON appends v without escaping <, > and &.
func appendJSON(b *bytes.Buffer, v any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the end of the line
	return nil
}
