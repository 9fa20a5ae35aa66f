package traces

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSecondsAreExact(t *testing.T) {
	for _, c := range []struct {
		in   string
		want time.Duration
	}{
		{"66.0", 66 * time.Second}, {"0.25", 250 * time.Millisecond}, {"1e3", 1000 * time.Second},
		{"1.5E-3", 1500 * time.Microsecond},
		{"+7", 7 * time.Second}, {"-0.5", -500 * time.Millisecond}, {".5", 500 * time.Millisecond}, {"5.", 5 * time.Second},
		{"0.1", 100 * time.Millisecond}, {"0.3", 300 * time.Millisecond}, {"1234567.000000001", 1234567*time.Second + 1},
		{"475.00000000000006", 475 * time.Second}, {"0.0000000005", 1}, {"0.00000000049999", 0}, {"-0.0000000005", -1},
		{"9223372036.854775807", math.MaxInt64}, {"0e99999999999999999999", 0}, {"1e-99999999999999999999", 0},
		{"000000000000000000000000000000012", 12 * time.Second}, {"0.00000000000000000000000000012e29", 12 * time.Second},
		{"4628226.0", 4628226 * time.Second},
	} {
		if got, err := seconds(c.in); err != nil || got != c.want {
			t.Errorf("Seconds(%q) = %d ns, %v; want %d ns", c.in, got, err, c.want)
		}
	}
}

func TestSecondsRefusesWhatIsNoTime(t *testing.T) {
	for _, s := range []string{"", " 1", "1 ", "1s", "NaN", "inf", "-Inf", "0x10", "1_000", "1,5", "1.2.3", ".", "-", "+",
		"e5", "1e", "1e+", "--1", "1e5.0", "１"} {
		if d, err := seconds(s); err == nil || !strings.Contains(err.Error(), "not a decimal number of seconds") {
			t.Errorf("Seconds(%q) = %v, %v", s, d, err)
		}
	}
	for _, s := range []string{"9223372036.854775808", "1e10", "-1e300", "1e999999999999999999999",
		strings.Repeat("9", 100000)} {
		d, err := seconds(s)
		if err == nil || !strings.Contains(err.Error(), "292 years") {
			t.Errorf("Seconds(%.40q) = %v, %v", s, d, err)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("a message of %d bytes", len(err.Error()))
		}
	}
}

func TestDecimalAgreesWithRationalArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[+-]?([0-9]{1,22}(\.[0-9]{0,22})?|\.[0-9]{1,22})([eE][+-]?[0-9]{1,2})?`).Draw(t, "s")
		places := rapid.IntRange(0, 18).Draw(t, "places")
		v, exact, err := Decimal(s, places)
		r, ok := new(big.Rat).SetString(s)
		if !ok {
			t.Fatalf("big.Rat does not read %q", s)
		}
		r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil)))
		half := big.NewRat(1, 2)
		if r.Sign() < 0 {
			half.Neg(half)
		}
		sum := new(big.Rat).Add(r, half)
		want := new(big.Int).Quo(sum.Num(), sum.Denom()) // truncates, so halves round away from zero
		if !want.IsInt64() || want.Int64() == math.MinInt64 {
			if err == nil {
				t.Fatalf("Decimal(%q, %d) = %d, want out of range", s, places, v)
			}
			return
		}
		if err != nil || v != want.Int64() || exact != r.IsInt() {
			t.Fatalf("Decimal(%q, %d) = %d, %v, %v; want %v, %v", s, places, v, exact, err, want, r.IsInt())
		}
	})
}

func TestAppendDecimalIsReadBack(t *testing.T) {
	if got := string(AppendSeconds([]byte("t="), 66*time.Second)); got != "t=66" {
		t.Errorf("%q", got)
	}
	if got := string(AppendSeconds(nil, -250*time.Millisecond)); got != "-0.25" {
		t.Errorf("%q", got)
	}
	if got := string(AppendDecimal(nil, math.MinInt64, 3)); got != "-9223372036854775.808" {
		t.Errorf("%q", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64Range(-math.MaxInt64, math.MaxInt64).Draw(t, "v")
		places := rapid.IntRange(0, 18).Draw(t, "places")
		s := string(AppendDecimal(nil, v, places))
		if got, exact, err := Decimal(s, places); err != nil || !exact || got != v {
			t.Fatalf("%d with %d places is written %q and read as %d, %v, %v", v, places, s, got, exact, err)
		}
	})
}

func TestReadingANumberAllocatesNothing(t *testing.T) {
	b := []byte("1234567.125")
	dst := make([]byte, 0, 32)
	if n := testing.AllocsPerRun(100, func() {
		d, _ := seconds(string(b))
		dst = AppendSeconds(dst[:0], d)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSeconds(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := seconds("10289.25"); err != nil {
			b.Fatal(err)
		}
	}
}

// seconds reads a decimal number of seconds, such as "66.0", "0.25" or "1e3", without going through a float. Up to nine
// decimals are exact; further decimals are rounded to the nearest nanosecond, halves away from zero. Anything that is
// not such a number (including "NaN" and "Inf") and anything above what a time.Duration holds (292 years) is an error.
func seconds(s string) (time.Duration, error) {
	v, _, err := Decimal(s, 9)
	switch err {
	case nil:
		return time.Duration(v), nil
	case errRange:
		return 0, fmt.Errorf("%q seconds are more than 292 years, the longest time that can be told", short(strings.Clone(s)))
	}
	return 0, fmt.Errorf("%q is not a decimal number of seconds", short(strings.Clone(s)))
}
