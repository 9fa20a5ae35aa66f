package traces

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

var (
	errNumber = errors.New("not a decimal number")
	errRange  = errors.New("out of range")
)

// Decimal reads s as a decimal number and returns it times 10^places as an integer, rounded to nearest, halves away
// from zero; exact reports that nothing was rounded. s is an optional sign, digits with at most one point among them,
// and an optional exponent. Decimal allocates nothing, and long digits or exponents cost no more than reading them.
// places is 0 to 18.
func Decimal(s string, places int) (v int64, exact bool, err error) {
	i, neg := 0, false
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		neg = s[i] == '-'
		i++
	}
	start, point, digits := i, -1, 0
	for ; i < len(s); i++ {
		if c := s[i]; c == '.' && point < 0 {
			point = digits
		} else if c >= '0' && c <= '9' {
			digits++
		} else {
			break
		}
	}
	end := i
	if digits == 0 {
		return 0, false, errNumber
	}
	if point < 0 {
		point = digits
	}
	exp := 0
	if i < len(s) {
		var ok bool
		if exp, ok = exponent(s[i:]); !ok {
			return 0, false, errNumber
		}
	}
	keep := point + exp + places // digits before the cut; the one after it decides the rounding
	var u uint64
	at, up := 0, false
	exact = true
	for k := start; k < end; k++ {
		if s[k] == '.' {
			continue
		}
		d := uint64(s[k] - '0')
		if at < keep {
			if u > (math.MaxInt64-d)/10 {
				return 0, false, errRange
			}
			u = u*10 + d
		} else {
			if at == keep {
				up = d >= 5
			}
			exact = exact && d == 0
		}
		at++
	}
	for ; at < keep && u != 0; at++ {
		if u > math.MaxInt64/10 {
			return 0, false, errRange
		}
		u *= 10
	}
	if up {
		u++
	}
	if u > math.MaxInt64 {
		return 0, false, errRange
	}
	if neg {
		return -int64(u), exact, nil
	}
	return int64(u), exact, nil
}

// exponent reads "e5", "E+5" or "e-5".
func exponent(s string) (exp int, ok bool) {
	if s[0] != 'e' && s[0] != 'E' {
		return 0, false
	}
	sign, digits := 1, s[1:]
	if digits != "" && (digits[0] == '+' || digits[0] == '-') {
		if digits[0] == '-' {
			sign = -1
		}
		digits = digits[1:]
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, false
		}
		exp = min(exp*10+int(digits[i]-'0'), 1<<40) // beyond any number of digits
	}
	return sign * exp, digits != ""
}

// AppendSeconds appends d as a decimal number of seconds with only the decimals it needs, such as "66" or "0.25".
// Decimal with 9 places reads it back exactly.
func AppendSeconds(dst []byte, d time.Duration) []byte { return AppendDecimal(dst, int64(d), 9) }

// AppendDecimal appends v/10^places in decimal, exactly and without trailing zeros. Decimal reads it back.
// places is 0 to 18.
func AppendDecimal(dst []byte, v int64, places int) []byte {
	u := uint64(v)
	if v < 0 {
		dst = append(dst, '-')
		u = -u
	}
	unit := uint64(1)
	for range places {
		unit *= 10
	}
	dst = strconv.AppendUint(dst, u/unit, 10)
	frac := u % unit
	if frac == 0 {
		return dst
	}
	dst = append(dst, '.')
	for frac != 0 {
		unit /= 10
		dst = append(dst, '0'+byte(frac/unit))
		frac %= unit
	}
	return dst
}

// short shortens a long value, so that messages stay readable.
func short(s string) string {
	if len(s) <= 80 {
		return s
	}
	return strings.ToValidUTF8(s[:80], "") + "…"
}
