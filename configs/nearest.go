package configs

import (
	"fmt"
	"reflect"
	"strings"
)

// unknown is the error for a key that a struct does not have. It names the nearest key of the same section, else
// a section that has a key of just this name, else all keys of the section.
func unknown(path, key string, names []string, section reflect.Type) error {
	if near := nearest(key, names); near != "" {
		return fmt.Errorf("%s: unknown key; did you mean %s?", path, near)
	}
	if inner := find(key, section, "", 0); inner != "" {
		return fmt.Errorf("%s: unknown key; did you mean %s?", path, join(strings.TrimSuffix(path[:len(path)-len(key)], "."), inner))
	}
	return fmt.Errorf("%s: unknown key; known are %s", path, strings.Join(names, ", "))
}

// find is the path of the first key called key inside t's sections, "" where there is none.
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

// nearest is the one of names that differs least from key, if so little that it was probably meant: a third of its
// letters at most, or a beginning. The first of equals wins.
func nearest(key string, names []string) string {
	best, least := "", 1+max(1, len(key)/3)
	for _, name := range names {
		d := distance(strings.ToLower(key), strings.ToLower(name))
		if len(key) >= 2 && strings.HasPrefix(name, key) {
			d = min(d, 1)
		}
		if d < least && d < max(len(name), len(key)) {
			best, least = name, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of neighbours between a and b (optimal string
// alignment, after Damerau, 1964).
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	rows := [3][]int{make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(s); i++ {
		now, last, before := rows[i%3], rows[(i+2)%3], rows[(i+1)%3]
		now[0] = i
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
	}
	return rows[len(s)%3][len(t)]
}
