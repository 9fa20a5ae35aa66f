package swf

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Header holds the values of the lines before the first job, by key as written ("MaxProcs", "UnixStartTime"). The
// values of a key that occurs several times, such as Note, are joined by line breaks.
type Header map[string]string

// maxHeader bounds the header, in bytes; what exceeds it is ignored.
const maxHeader = 1 << 18

// Int returns the whole number with which the value of key begins, in any capitals of key. Logs have words behind it,
// as in "128 (64 x 2)", and commas in it, as in "1,024"; a product of two numbers, "64 x 2", is their product. ok is
// false if there is no such number.
func (h Header) Int(key string) (v int, ok bool) {
	text, found := h[key]
	if !found {
		for _, k := range slices.Sorted(maps.Keys(h)) {
			if strings.EqualFold(k, key) {
				text = h[k]
				break
			}
		}
	}
	v, rest, ok := leading(strings.TrimLeft(text, " \t~"))
	if !ok {
		return 0, false
	}
	times := strings.TrimLeft(rest, " \t")
	for _, sign := range []string{"x", "X", "×", "*"} {
		by, behind, ok := leading(strings.TrimLeft(strings.TrimPrefix(times, sign), " \t"))
		if !strings.HasPrefix(times, sign) || !ok || !alone(behind) {
			continue
		}
		if v < 0 || by < 0 || by > 0 && v > math.MaxInt32/by {
			return 0, false
		}
		return v * by, true
	}
	return v, alone(rest)
}

// leading reads the whole number with which s begins, whose digits may be in groups of three.
func leading(s string) (v int, rest string, ok bool) {
	digits := func(s string) int {
		n := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		return n
	}
	rest = s
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
		rest = s[1:]
	}
	n := digits(rest)
	text := s[:len(s)-len(rest)] + rest[:n]
	rest = rest[n:]
	for n > 0 && n <= 3 {
		found := false
		for _, sep := range []string{",", "'", "_", "\u00a0", "\u202f", "\u2009"} {
			if group, is := strings.CutPrefix(rest, sep); is && digits(group) == 3 {
				text, rest, found = text+group[:3], group[3:], true
				break
			}
		}
		if !found {
			break
		}
	}
	v, err := strconv.Atoi(text)
	return v, rest, err == nil
}

// alone reports whether rest, behind the digits of a number, leaves it one: it is no part of a fraction, of a date or
// of a range, no 4K, and no other number follows, as in 1 024.
func alone(rest string) bool {
	if zeros := strings.TrimLeft(strings.TrimPrefix(rest, "."), "0"); strings.HasPrefix(rest, ".") {
		rest = zeros
	}
	rest, _, _ = strings.Cut(rest, "\n")
	words := strings.Fields(rest)
	if len(words) == 0 {
		return true
	}
	if rest[0] == ' ' || rest[0] == '\t' {
		_, err := strconv.Atoi(words[0])
		return err != nil && !strings.HasPrefix(words[0],
			"-") && !strings.HasPrefix(words[0], "/") || strings.Trim(words[0],
			"-/") == "" && len(words) > 1 && (words[1][0] < '0' || words[1][0] > '9')
	}
	letters := strings.IndexFunc(rest, func(r rune) bool { return !unicode.IsLetter(r) })
	return strings.ContainsAny(rest[:1],
		"(;[{=") || rest[0] == ',' && len(rest) > 1 && (rest[1] < '0' || rest[1] > '9') || letters > 1 ||
		letters < 0 && len(rest) > 1
}

// Procs returns the size of the machine in processors: MaxProcs, else MaxNodes, or 0 if the header has neither.
func (h Header) Procs() int {
	for _, key := range [...]string{"MaxProcs", "MaxNodes"} {
		if n, ok := h.Int(key); ok && n > 0 {
			return n
		}
	}
	return 0
}

// add adds one line that began with a semicolon and returns its key. last is the key of the line before, which a line
// without a key continues; size is the header's size so far.
func (h Header) add(line, last string, size *int) string {
	key, value, ok := strings.Cut(strings.TrimLeft(line, "; \t"), ":")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	// not a key: words, such as "user=3 and proc=1", or an address
	if !ok || key == "" || strings.ContainsAny(key, " \t/") {
		key, value = last, strings.TrimSpace(strings.TrimLeft(line, "; \t"))
		if key == "" || value == "" {
			return last
		}
	}
	if *size += len(key) + len(value) + 1; *size > maxHeader {
		return key
	}
	if old, again := h[key]; again {
		value = old + "\n" + value
	}
	h[key] = value
	return key
}
