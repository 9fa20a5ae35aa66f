// Package nearest finds the name that a user probably meant: of a configuration's key, a flag, a verb, a cluster, a
// policy. It is for suggestions in error messages only; a program must not use the suggestion without asking.
package nearest

import "strings"

// Name returns the one of names that name was probably meant to be, or "" if none is near. A near name differs by
// insertions, deletions, replacements and swaps of neighbouring letters, at most a third of name's letters (one if it
// has fewer than six), or it begins with name and name has at least two letters. At least one letter must stay
// unchanged. Name ignores case; the first of names wins a tie.
func Name(name string, names []string) string {
	want := []rune(strings.ToLower(name))
	best, least := "", 1+max(1, len(want)/3)
	for _, n := range names {
		have := []rune(strings.ToLower(n))
		d := distance(want, have)
		if len(want) >= 2 && strings.HasPrefix(string(have), string(want)) {
			d = min(d, 1)
		}
		if d < least && d < max(len(want), len(have)) {
			best, least = n, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of neighbours between a and b, where no letter is
// changed twice (optimal string alignment, after Damerau, 1964).
func distance(a, b []rune) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for k := range rows[0] {
		rows[0][k] = k
	}
	for i := 1; i <= len(a); i++ {
		now, last, before := rows[i%3], rows[(i+2)%3], rows[(i+1)%3]
		now[0] = i
		for k := 1; k <= len(b); k++ {
			replace := 1
			if a[i-1] == b[k-1] {
				replace = 0
			}
			now[k] = min(last[k]+1, now[k-1]+1, last[k-1]+replace)
			if i > 1 && k > 1 && a[i-1] == b[k-2] && a[i-2] == b[k-1] {
				now[k] = min(now[k], before[k-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}

// OneOf returns what would have been right in place of name: "one of" and the names, and the one that was probably
// meant.
func OneOf(name string, names []string) string {
	return "one of " + strings.Join(names, ", ") + Meant(name, names)
}

// Meant returns the end of a message that refuses name, "; did you mean X?", or "" if none of names is near.
func Meant(name string, names []string) string {
	if near := Name(name, names); near != "" && near != name {
		return "; did you mean " + near + "?"
	}
	return ""
}
