package swf

import (
	"strconv"
	"strings"
)

// Header holds the values of the lines before the first job, by key as written ("MaxProcs", "UnixStartTime"). The
// values of a key that occurs several times, such as Note, are joined by line breaks.
type Header map[string]string

// maxHeader bounds the header, in bytes; what exceeds it is ignored.
const maxHeader = 1 << 18

// Int returns the whole number under key; ok is false if there is none.
func (h Header) Int(key string) (v int, ok bool) {
	v, err := strconv.Atoi(h[key])
	return v, err == nil
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
	if !ok || key == "" || strings.ContainsAny(key, " \t/") { // not a key: words, such as "user=3 and proc=1", or an address
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
