package configs

import (
	"fmt"
	"reflect"
	"strings"

	"clustergym/internal/nearest"
)

// unknown returns the error for a key that a struct does not have. The error names the nearest key of the same section,
// else a section inside it that has exactly this key, else all keys of the section.
func unknown(path, key string, names []string, section reflect.Value) error {
	if near := nearest.Name(key, names); near != "" {
		return fmt.Errorf("%s: unknown key; did you mean %s?", path, near)
	}
	if inner := find(key, section, "", 0); inner != "" {
		return fmt.Errorf("%s: unknown key; did you mean %s?", path,
			join(strings.TrimSuffix(path[:len(path)-len(key)], "."), inner))
	}
	return fmt.Errorf("%s: unknown key; known are %s", path, strings.Join(names, ", "))
}

// find returns the path of the first key called key inside v's sections, or "".
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
		if inner.Kind() == reflect.Struct && !isText(inner) {
			if p := find(key, inner, join(path, name), depth+1); p != "" {
				return p
			}
		}
	}
	return ""
}
