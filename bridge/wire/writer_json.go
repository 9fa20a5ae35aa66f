package wire

import (
	"math"
	"strconv"
	"unicode/utf8"
)

func closing(isMap bool) byte {
	if isMap {
		return '}'
	}
	return ']'
}

const hexDigits = "0123456789abcdef"

// appendText appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	plain := 0 // s[plain:i] needs no escape
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[plain:i]...), "\uFFFD"...)
				plain = i + 1
			}
			i += n
			continue
		}
		b = append(b, s[plain:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		plain = i
	}
	return append(append(b, s[plain:]...), '"')
}

// appendNumber appends v in the fewest digits that identify it, always with a point or an exponent, so that readers can
// tell floats from integers. NaN and infinities become null.
func appendNumber(b []byte, v float64, bits int) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	if abs := math.Abs(v); abs != 0 && (abs < 1e-6 || abs >= 1e16) {
		return strconv.AppendFloat(b, v, 'e', -1, bits)
	}
	at := len(b)
	b = strconv.AppendFloat(b, v, 'f', -1, bits)
	for _, c := range b[at:] {
		if c == '.' {
			return b
		}
	}
	return append(b, '.', '0')
}

// flush writes the array that is pending in a JSON message as nested lists.
func (w *Writer) flush() {
	if !w.waiting {
		return
	}
	w.waiting = false
	w.nested(w.pending.Shape, 0, w.pending.Len())
	w.end()
}

// nested writes the elements beginning with the given one, as lists of the given shape.
func (w *Writer) nested(shape []int, from, n int) {
	if len(shape) == 0 {
		w.element(from)
		return
	}
	w.buf.b = append(w.buf.b, '[')
	each := n / max(shape[0], 1)
	for i := range shape[0] {
		if i > 0 {
			w.buf.b = append(w.buf.b, ',')
		}
		w.nested(shape[1:], from+i*each, each)
	}
	w.buf.b = append(w.buf.b, ']')
}

func (w *Writer) element(i int) {
	switch a := &w.pending; a.DType {
	case Bool:
		w.buf.b = strconv.AppendBool(w.buf.b, a.Data[i] != 0)
	case F32, F16:
		w.buf.b = appendNumber(w.buf.b, a.Float(i), 32)
	case F64:
		w.buf.b = appendNumber(w.buf.b, a.Float(i), 64)
	default:
		v, ok := a.Int(i)
		if !ok { // above the largest int64
			w.buf.b = strconv.AppendUint(w.buf.b, uint64(v), 10)
			return
		}
		w.buf.b = strconv.AppendInt(w.buf.b, v, 10)
	}
}
