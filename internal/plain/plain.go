// Package plain makes texts of others safe to show: names of jobs, users and tasks, messages of programs, cells of
// tables. A terminal obeys the control characters in what is printed, so that a job's name could move the cursor,
// change the title or hide a line; marks that change the direction of text make a line look like another one.
package plain

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns s as one line that can be printed: line breaks, control characters, marks that change the direction of
// text and bytes that are not UTF-8 become U+FFFD each. A text without them is returned as it is, without allocation.
func Line(s string) string {
	if clean(s, false) {
		return s
	}
	return strings.Map(func(r rune) rune { return shown(r, false) }, s)
}

// Text is Line for texts of several lines: line feeds and tabs stay, and a carriage return before a line feed goes.
func Text(s string) string {
	if clean(s, true) {
		return s
	}
	return strings.Map(func(r rune) rune { return shown(r, true) }, strings.ReplaceAll(s, "\r\n", "\n"))
}

// Clip is Line, cut to at most n runes with "…" in place of the rest.
func Clip(s string, n int) string {
	runes := 0
	for i := range s {
		if runes == n {
			return Line(s[:i]) + "…"
		}
		runes++
	}
	return Line(s)
}

func clean(s string, lines bool) bool {
	for i, r := range s {
		if shown(r, lines) != r {
			return false
		}
		// A U+FFFD that stands in the text itself is three bytes long, one that stands for a bad byte is one.
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return false
			}
		}
	}
	return true
}

func shown(r rune, lines bool) rune {
	if unicode.IsPrint(r) || lines && (r == '\n' || r == '\t') {
		return r
	}
	return utf8.RuneError
}
