package cli

import (
	"strconv"
	"strings"
	"unicode"
)

// Percent formats the share of part in of; - of nothing.
func Percent(part, of float64) string {
	if of == 0 {
		return "-"
	}
	return strconv.FormatFloat(100*part/of, 'f', 1, 64) + " %"
}

// Seconds formats a time in a suitable unit.
func Seconds(s float64) string {
	switch {
	case s >= 2*86400:
		return strconv.FormatFloat(s/86400, 'f', 1, 64) + " d"
	case s >= 2*3600:
		return strconv.FormatFloat(s/3600, 'f', 1, 64) + " h"
	case s >= 2*60:
		return strconv.FormatFloat(s/60, 'f', 1, 64) + " min"
	}
	return strconv.FormatFloat(s, 'f', -1, 64) + " s"
}

// ShellWords returns words as a shell reads them.
func ShellWords(words ...string) string {
	q := make([]string, len(words))
	for i, s := range words {
		if q[i] = s; s == "" || strings.ContainsFunc(s, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./,:=+@%", r)
		}) {
			q[i] = "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
		}
	}
	return strings.Join(q, " ")
}
