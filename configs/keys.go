package configs

import (
	"reflect"

	"go.yaml.in/yaml/v3"
)

// AllKeys returns the paths of all single values, lists and maps of cfg that Set can change, as "ppo.gamma", in the
// order of its fields.
func AllKeys(cfg Validator) []string {
	v, err := structOf(cfg)
	if err != nil {
		return nil
	}
	return keysOf(nil, v, "", 0)
}

func keysOf(keys []string, v reflect.Value, path string, depth int) []string {
	names, byName := fields(v, false)
	for _, name := range names {
		inner, at := byName[name].value, join(path, name)
		for inner.Kind() == reflect.Pointer && !inner.IsNil() {
			inner = inner.Elem()
		}
		// A run encodes itself without the keys that its environment does not take, and is a section all the same.
		n, custom, err := (form{}).custom(inner)
		section := inner.Kind() == reflect.Struct && (!custom || err == nil && n.Kind == yaml.MappingNode)
		if section && depth < maxDepth {
			keys = keysOf(keys, inner, at, depth+1)
		} else {
			keys = append(keys, at)
		}
	}
	return keys
}
