package configs

import (
	"fmt"
	"reflect"
	"strings"

	"clustergym/internal/nearest"
)

// unknown returns the error for a key that a struct does not have. The error names the nearest key of the same section,
// else a section inside it that has exactly this key, else all keys of the section.
func unknown(path, key string, names []string, section reflect.Type) error {
	if near := nearest.Name(key, names); near != "" {
		return fmt.Errorf("%s: unknown key; did you mean %s?", path, near)
	}
	if inner := find(key, section, "", 0); inner != "" {
		return fmt.Errorf("%s: unknown key; did you mean %s?", path, join(strings.TrimSuffix(path[:len(path)-len(key)], "."), inner))
	}
	return fmt.Errorf("%s: unknown key; known are %s", path, strings.Join(names, ", "))
}

// find returns the path of the first key called key inside t's sections, or "".
func find(key string, t reflect.Type, path string, depth int) string {
	if depth > maxDepth {
		return ""
	}
	names, byName := fields(t)
	for _, name := range names {
		ft := t.FieldByIndex(byName[name]).Type
		if name == key {
			return join(path, name)
		}
		if ft.Kind() == reflect.Struct {
			if p := find(key, ft, join(path, name), depth+1); p != "" {
				return p
			}
		}
	}
	return ""
}
