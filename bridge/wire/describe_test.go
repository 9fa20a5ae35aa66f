package wire

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
)

// appendValue appends the description of a decoded value as the golden files have it (testdata/golden/README.md).
func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case uint64:
		return strconv.AppendUint(b, v, 10)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return append(append(append(b, `{"$float": `...), notFinite(v)...), '}')
		}
		return appendNumber(b, v, 64)
	case string:
		return appendText(b, v)
	case []byte:
		return append(append(append(b, `{"$bin": "`...), hex.EncodeToString(v)...), `"}`...)
	case Array:
		b = fmt.Appendf(b, `{"$array": %q, "shape": [`, v.DType.String())
		for i, d := range v.Shape {
			b = comma(b, i)
			b = strconv.AppendInt(b, int64(d), 10)
		}
		b = append(b, `], "data": [`...)
		for i := range v.Len() {
			b = comma(b, i)
			b = appendElement(b, v, i)
		}
		return append(b, "]}"...)
	case []any:
		b = append(b, '[')
		for i, x := range v {
			b = appendValue(comma(b, i), x)
		}
		return append(b, ']')
	case Map:
		b = append(b, '{')
		for i, p := range v {
			b = append(appendText(comma(b, i), p.Key), ": "...)
			b = appendValue(b, p.Value)
		}
		return append(b, '}')
	}
	panic(fmt.Sprintf("a decoded value of type %T", v))
}

func comma(b []byte, i int) []byte {
	if i > 0 {
		return append(b, ", "...)
	}
	return b
}

func notFinite(v float64) string {
	switch {
	case v > 0:
		return `"inf"`
	case v < 0:
		return `"-inf"`
	}
	return `"nan"`
}

func appendElement(b []byte, a Array, i int) []byte {
	switch a.DType {
	case Bool:
		return strconv.AppendBool(b, a.Data[i] == 1)
	case F16, F32, F64:
		v := a.Float(i)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return append(b, notFinite(v)...)
		}
		if a.DType == F64 {
			return appendNumber(b, v, 64)
		}
		return appendNumber(b, v, 32)
	}
	v, ok := a.Int(i)
	if !ok {
		return strconv.AppendUint(b, uint64(v), 10)
	}
	return strconv.AppendInt(b, v, 10)
}
