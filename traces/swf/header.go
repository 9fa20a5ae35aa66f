package swf

import (
	"strconv"
	"strings"
)

// Header is what the lines before the first job say, by key as written ("MaxProcs", "UnixStartTime"). A key that
// stands several times, as Note does, has its values joined by line breaks.
type Header map[string]string

// maxHeader bounds what is kept of a header, in bytes; what follows is passed over.
const maxHeader = 1 << 18

// Int is the whole number under key; ok is false where there is none.
func (h Header) Int(key string) (v int, ok bool) {
	v, err := strconv.Atoi(h[key])
	return v, err == nil
}

// Procs is the size of the machine in processors: MaxProcs, else MaxNodes, 0 where the header has neither.
func (h Header) Procs() int {
	for _, key := range [...]string{"MaxProcs", "MaxNodes"} {
		if n, ok := h.Int(key); ok && n > 0 {
			return n
		}
	}
	return 0
}

// add takes one line that began with a semicolon. last is the key of the line before, for lines that go on
// without one; size is what the header holds so far.
func (h Header) add(line, last string, size *int) string {
	key, value, ok := strings.Cut(strings.TrimLeft(line, "; \t"), ":")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	if !ok || key == "" || strings.ContainsAny(key, " \t/") { // words, as "user=3 and proc=1", or an address
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
