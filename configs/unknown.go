package configs

import (
	"fmt"
	"reflect"
	"strings"

	"clustergym/internal/nearest"
)

// unknown is the error for a key that a struct does not have. It names the nearest key of the same section, else
// a section that has a key of just this name, else all keys of the section.
func unknown(path, key string, names []string, section reflect.Value) error {
	if near := nearest.Name(key, names); near != "" {
		return fmt.Errorf("%s: unknown key; did you mean %s?", path, near)
	}
	if inner := find(key, section, "", 0); inner != "" {
		return fmt.Errorf("%s: unknown key; did you mean %s?", path, join(strings.TrimSuffix(path[:len(path)-len(key)], "."), inner))
	}
	return fmt.Errorf("%s: unknown key; known are %s", path, strings.Join(names, ", "))
}

// find is the path of the first key called key inside v's sections, "" where there is none.
func find(key string, v reflect.Value, path string, depth int) string {
	if depth > maxDepth {
		return ""
	}
	names, byName := fields(v, false)
	for _, name := range names {
		inner := byName[name].value
		if name == key {
			return join(path, name)
		}
		if inner.Kind() == reflect.Struct {
			if p := find(key, inner, join(path, name), depth+1); p != "" {
				return p
			}
		}
	}
	return ""
}
