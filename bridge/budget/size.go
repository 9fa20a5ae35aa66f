package budget

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// units are the suffixes of sizes, the longest first.
var units = []struct {
	name  string
	bytes float64
}{
	{"tib", 1 << 40}, {"gib", 1 << 30}, {"mib", 1 << 20}, {"kib", 1 << 10},
	{"tb", 1e12}, {"gb", 1e9}, {"mb", 1e6}, {"kb", 1e3}, {"b", 1}, {"", 1},
}

// errSize says what sizes look like.
var errSize = errors.New("want a size such as 4GiB, 500MB or 1073741824")

// ParseSize reads a size: a number with a unit, kB, MB, GB, TB or KiB, MiB, GiB, TiB, or of bytes.
func ParseSize(s string) (int64, error) {
	text := strings.ToLower(strings.TrimSpace(s))
	for _, u := range units {
		number, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		number = strings.TrimSpace(number)
		if strings.ContainsFunc(number, func(r rune) bool { return (r < '0' || r > '9') && r != '.' }) {
			return 0, errSize
		}
		x, err := strconv.ParseFloat(number, 64)
		if x *= u.bytes; err != nil || !(x >= 1) || x >= math.MaxInt64/4 {
			return 0, errSize
		}
		return int64(x), nil
	}
	return 0, errSize
}

// Size returns n bytes in words: 1.5 GiB.
func Size(n int64) string {
	const unit = "KMGTPE"
	if n < 1<<10 {
		return strconv.FormatInt(n, 10) + " bytes"
	}
	x, k := float64(n)/(1<<10), 0
	for x >= 1<<10 {
		x /= 1 << 10
		k++
	}
	digits := 0
	if x < 10 && x != math.Trunc(x) {
		digits = 1
	}
	return strconv.FormatFloat(x, 'f', digits, 64) + " " + unit[k:k+1] + "iB"
}
