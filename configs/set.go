package configs

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"clustergym/internal/fault"
)

// Set applies one change to cfg, a pointer to a struct: "key.path=value", where the value is YAML. Elements of lists
// are addressed as racks[0].count or racks.0.count, entries of maps by their keys (which may be new). Lists, maps and
// sections can be replaced as a whole: "policies=[fifo, sjf]", "train={steps: 1e6}". The value of a text is taken
// literally if it is not a single YAML value. "policies+=[fifo, sjf]" and "policies+=fifo" add to the end of a list.
//
// Set does not validate, because several changes may be needed to get from one valid configuration to another: call
// cfg.Validate after the last. On an error cfg is unchanged.
func Set(cfg Validator, assignment string) error {
	_, err := SetKeys(cfg, assignment)
	return err
}

// SetKeys is Set that also returns the paths of the keys and list elements that got a value, sorted: "train",
// "train.steps".
func SetKeys(cfg Validator, assignment string) ([]string, error) {
	target, err := structOf(cfg)
	if err != nil {
		return nil, err
	}
	path, text, ok := strings.Cut(assignment, "=")
	path, adds := strings.CutSuffix(strings.TrimSpace(path), "+")
	path = strings.TrimSpace(path)
	if !ok || path == "" {
		return nil, fmt.Errorf("got %q, want KEY.PATH=VALUE", assignment)
	}
	steps, err := split(path)
	if err != nil {
		return nil, err
	}
	work := reflect.New(target.Type()).Elem()
	work.Set(target)
	given := map[string]int{}
	put := setText
	if adds {
		put = addText
	}
	if err := assign(work, "", steps, text, given, put); err != nil {
		return nil, err
	}
	target.Set(work)
	return slices.Sorted(maps.Keys(given)), nil
}

// split splits a path such as "racks[0].nodes.1.gpus".
func split(path string) ([]string, error) {
	var steps []string
	for _, part := range strings.Split(path, ".") {
		name, rest, indexed := strings.Cut(part, "[")
		if name != "" {
			steps = append(steps, name)
		}
		for indexed {
			index, more, closed := strings.Cut(rest, "]")
			if _, err := strconv.Atoi(index); !closed || err != nil || more != "" && more[0] != '[' {
				return nil, fmt.Errorf("got the path %q, want names and indices as racks[0].count", path)
			}
			steps = append(steps, index)
			_, rest, indexed = strings.Cut(more, "[")
		}
		if part == "" || strings.HasPrefix(part, "[") && len(steps) == 0 {
			return nil, fmt.Errorf("got the path %q, want names and indices as racks[0].count", path)
		}
	}
	return steps, nil
}

// assign sets the value at the path steps inside v, which is settable, and adds the keys that got a value to
// given. It copies every list and map on the way. put decodes text into the value.
func assign(v reflect.Value, key string, steps []string, text string, given map[string]int, put putter) error {
	if v.Kind() == reflect.Pointer {
		p := reflect.New(v.Type().Elem())
		if !v.IsNil() {
			p.Elem().Set(v.Elem())
		}
		if err := assign(p.Elem(), key, steps, text, given, put); err != nil {
			return err
		}
		v.Set(p)
		return nil
	}
	if len(steps) == 0 {
		return put(v, key, text, given)
	}
	step := steps[0]
	switch v.Kind() {
	case reflect.Struct:
		if isText(v) {
			break
		}
		path := join(key, step)
		names, byName := fields(v, true)
		f, known := byName[step]
		if !known {
			return unknown(path, step, names, v)
		}
		return assign(f.value, path, steps[1:], text, given, put)
	case reflect.Slice, reflect.Array:
		path := fmt.Sprintf("%s[%s]", key, step)
		i, err := strconv.Atoi(step)
		if err != nil {
			return fmt.Errorf("%s: %q is no index into a list", key, step)
		}
		if i < 0 || i >= v.Len() {
			return fmt.Errorf("%s: there is no such element; %s has %d", path, key, v.Len())
		}
		if v.Kind() == reflect.Slice {
			c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(c, v)
			v.Set(c)
		}
		return assign(v.Index(i), path, steps[1:], text, given, put)
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			break
		}
		k := reflect.ValueOf(step).Convert(v.Type().Key())
		x := reflect.New(v.Type().Elem()).Elem()
		if old := v.MapIndex(k); old.IsValid() {
			x.Set(old)
		}
		if err := assign(x, join(key, step), steps[1:], text, given, put); err != nil {
			return err
		}
		c := reflect.MakeMapWithSize(v.Type(), v.Len()+1)
		for it := v.MapRange(); it.Next(); {
			c.SetMapIndex(it.Key(), it.Value())
		}
		c.SetMapIndex(k, x)
		v.Set(c)
		return nil
	}
	return fmt.Errorf("%s: is a single value and has no key %s", key, step)
}

// putter decodes text into v, whose path is key, and adds the keys that got a value to given.
type putter = func(v reflect.Value, key, text string, given map[string]int) error

// addText adds the elements that text lists, or the one that it is, to the end of the list v.
func addText(v reflect.Value, key, text string, given map[string]int) error {
	if v.Kind() != reflect.Slice {
		return fmt.Errorf("%s: is no list, to which += adds; want %s=VALUE", key, key)
	}
	more := reflect.New(v.Type()).Elem()
	if doc, err := parse([]byte(text)); err != nil || doc == nil || doc.Kind != yaml.SequenceNode {
		one := reflect.New(v.Type().Elem()).Elem()
		if err := setText(one, fmt.Sprintf("%s[%d]", key, v.Len()), text, given); err != nil {
			return err
		}
		more = reflect.Append(more, one)
	} else if err := setText(more, key, text, given); err != nil {
		return err
	}
	given[key] = 0
	v.Set(reflect.AppendSlice(v.Slice3(0, v.Len(), v.Len()), more))
	return nil
}

// setText decodes text into v.
func setText(v reflect.Value, key, text string, given map[string]int) error {
	doc, err := parse([]byte(text))
	if (v.Kind() == reflect.String || isText(v)) && (err != nil || doc == nil || doc.Kind != yaml.ScalarNode) {
		doc, err = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}, nil
	}
	if err != nil {
		return &fault.Fault{Key: key, Value: strconv.Quote(short(text)), Want: "a YAML value"}
	}
	if doc == nil {
		doc = &yaml.Node{Kind: yaml.ScalarNode, Tag: nullTag}
		if k := v.Kind(); k == reflect.Struct || k == reflect.Map {
			return &fault.Fault{Key: key, Value: "nothing", Want: "keys and values"}
		}
	}
	d := newDecoder()
	d.value(key, doc, v, 0)
	maps.Copy(given, d.lines)
	errs := make([]error, len(d.errs))
	for i, e := range d.errs {
		errs[i] = e.Err
	}
	return errors.Join(errs...)
}
