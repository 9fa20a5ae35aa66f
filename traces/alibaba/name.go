package alibaba

import "bytes"

// maxNumber bounds the numbers of tasks; a name with a larger one counts as a name of another shape.
const maxNumber = 1 << 30

// parseName reads a task's name. If the name does not match the grammar, number is 0 and parents is nil. A
// name that ends in _ was cut, and with it its list of parents. parents are appended to buf[:0].
func parseName(name []byte, buf []int32) (number int32, parents []int32) {
	parents = buf[:0]
	if len(name) < 2 || name[0] < 'A' || name[0] > 'Z' {
		return 0, nil
	}
	rest := name[1:]
	if number, rest = leading(rest); number == 0 {
		return 0, nil
	}
	for len(rest) > 0 {
		if rest[0] != '_' {
			return 0, nil
		}
		rest = rest[1:]
		if len(rest) == 0 {
			return number, parents
		}
		if stage, ok := bytes.CutPrefix(rest, []byte("Stg")); ok {
			if n, end := leading(stage); n > 0 && len(end) == 0 {
				return number, parents
			}
			return 0, nil
		}
		var p int32
		if p, rest = leading(rest); p == 0 {
			return 0, nil
		}
		parents = append(parents, p)
	}
	return number, parents
}

// leading returns the number that b begins with, or 0, and the bytes after it.
func leading(b []byte) (n int32, rest []byte) {
	for len(b) > 0 && b[0] >= '0' && b[0] <= '9' && n < maxNumber/10 {
		n = n*10 + int32(b[0]-'0')
		b = b[1:]
	}
	return n, b
}
