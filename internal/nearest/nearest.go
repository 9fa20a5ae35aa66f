// Package nearest finds the name that somebody probably meant to write: of a configuration's key, a flag, a verb,
// a cluster, a policy. It suggests, in the words of an error; nothing may be chosen by it without being asked.
package nearest

import "strings"

// Name is the one of names that name was probably meant to be: at most a third of name's letters away (one, where
// it has fewer than six) by insertions, deletions, replacements and swaps of neighbours, or beginning with name,
// if that has two letters. Upper and lower case are the same. It is "" where none is near, or where not a letter
// would stay as it is; the first wins a tie.
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

// distance counts the insertions, deletions, replacements and swaps of neighbours between a and b, where no letter
// is touched twice (optimal string alignment, after Damerau, 1964).
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
