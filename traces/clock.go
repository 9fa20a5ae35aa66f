package traces

import (
	"bytes"
	"math"
	"strings"
	"time"
)

// ParseDate reads a date of ISO 8601 with the year first, such as "2024-03-01T12:00:00Z", "2024-03-01 12:00:00.25",
// "2024-03-01 12:00+01:00" or "2024-03-01", as the time since 1970. zoned reports whether the date names its zone; one
// that does not is read as if its clock showed UTC, which is right for differences. Years are 1970 to 2199. Decimals of
// a second beyond nine are cut off. It allocates nothing and takes a tenth of time.Parse's time.
func ParseDate(b []byte) (at time.Duration, zoned, ok bool) {
	if len(b) < 10 || b[4] != '-' || b[7] != '-' {
		return 0, false, false
	}
	ok = true
	num := func(from, to int) (v int) {
		for _, c := range b[from:to] {
			ok = ok && c >= '0' && c <= '9'
			v = v*10 + int(c-'0')
		}
		return v
	}
	year, month, day := num(0, 4), num(5, 7), num(8, 10)
	if !ok || year < 1970 || year > 2199 || month < 1 || month > 12 {
		return 0, false, false
	}
	t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if t.Day() != day || day == 0 { // the 31st of November became the 1st of December
		return 0, false, false
	}
	at = time.Duration(t.Unix()) * time.Second
	if len(b) == 10 {
		return at, false, true
	}
	if len(b) < 16 || b[10] != ' ' && b[10]|0x20 != 't' || b[13] != ':' {
		return 0, false, false
	}
	hour, minute, second := num(11, 13), num(14, 16), 0
	i := 16
	if i < len(b) && b[i] == ':' {
		if len(b) < 19 {
			return 0, false, false
		}
		second, i = num(17, 19), 19
	}
	if !ok || hour > 23 || minute > 59 || second > 59 {
		return 0, false, false
	}
	at += time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second
	if i == 19 && i < len(b) && (b[i] == '.' || b[i] == ',') {
		part, n := fraction(b[i+1:])
		if n == 0 {
			return 0, false, false // a point without decimals
		}
		at, i = at+part, i+1+n
	}
	if i == len(b) {
		return at, false, true
	}
	offset, ok := zone(b[i:])
	at -= offset
	return at, ok, ok && at >= 0
}

// zone reads "Z", "UTC", "+01", "+0100" or "+01:00", perhaps after a blank, as the time by which that clock is ahead of
// UTC.
func zone(b []byte) (time.Duration, bool) {
	if len(b) > 1 && b[0] == ' ' {
		b = b[1:]
	}
	switch string(b) {
	case "Z", "z", "UTC", "GMT":
		return 0, true
	}
	if len(b) == 6 && b[3] == ':' {
		b = []byte{b[0], b[1], b[2], b[4], b[5]}
	}
	if len(b) != 3 && len(b) != 5 || b[0] != '+' && b[0] != '-' {
		return 0, false
	}
	var v [4]int
	for i, c := range b[1:] {
		if c < '0' || c > '9' {
			return 0, false
		}
		v[i] = int(c - '0')
	}
	hours, minutes := v[0]*10+v[1], v[2]*10+v[3]
	d := time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	if b[0] == '-' {
		d = -d
	}
	return d, hours <= 23 && minutes <= 59
}

// ParseDuration reads a length of time as programs write it: with units ("1h30m", "2d4h", "90s"), as a clock shows it
// ("02:03:04", "100:00:00.5"), and with days before that as Slurm ("1-02:03:04") and Python ("1 day, 2:03:04") write
// them. A plain number is none of these: its unit is the caller's to know. Nor is "02:03", which may be minutes or
// hours.
func ParseDuration(b []byte) (time.Duration, bool) {
	if bytes.IndexByte(b, ':') < 0 {
		if n, unit, ok := bytes.Cut(b, []byte{' '}); ok && isDays(unit) { // "2 days"
			return days(n)
		}
		return units(string(b))
	}
	total := time.Duration(0)
	rest := b
	if n, after, ok := bytes.Cut(b, []byte{' '}); ok {
		unit, clock, _ := bytes.Cut(after, []byte{' '})
		if !isDays(bytes.TrimSuffix(unit, []byte{','})) {
			return 0, false
		}
		if total, ok = days(n); !ok {
			return 0, false
		}
		rest = clock
	} else if n, after, ok := bytes.Cut(b, []byte{'-'}); ok {
		if total, ok = days(n); !ok {
			return 0, false
		}
		rest = after
	}
	clock, ok := ofClock(rest)
	if !ok || clock > math.MaxInt64-total {
		return 0, false
	}
	return total + clock, true
}

func isDays(b []byte) bool { return string(b) == "day" || string(b) == "days" }

const day = 24 * time.Hour

// days reads a whole number of days.
func days(b []byte) (time.Duration, bool) {
	n, ok := plainNumber(bytes.TrimLeft(b, "0"))
	if len(b) > 0 && len(bytes.TrimLeft(b, "0")) == 0 {
		n, ok = 0, true
	}
	return time.Duration(n) * day, ok && n <= uint64(math.MaxInt64/day)
}

// ofClock reads "2:03:04" or "02:03:04.25".
func ofClock(b []byte) (time.Duration, bool) {
	hours, rest, ok := bytes.Cut(b, []byte{':'})
	if !ok || len(rest) < 5 || rest[2] != ':' || len(hours) == 0 || len(hours) > 7 {
		return 0, false
	}
	var v [3]int64
	for i, part := range [...][]byte{hours, rest[:2], rest[3:5]} {
		for _, c := range part {
			if c < '0' || c > '9' {
				return 0, false
			}
			v[i] = v[i]*10 + int64(c-'0')
		}
	}
	if v[0] > int64(math.MaxInt64/time.Hour)-1 || v[1] > 59 || v[2] > 59 {
		return 0, false
	}
	d := time.Duration(v[0])*time.Hour + time.Duration(v[1])*time.Minute + time.Duration(v[2])*time.Second
	if rest = rest[5:]; len(rest) == 0 {
		return d, true
	}
	if rest[0] != '.' && rest[0] != ',' || len(rest) == 1 {
		return 0, false
	}
	part, n := fraction(rest[1:])
	return d + part, n == len(rest)-1
}

// fraction reads the decimals of a second with which b begins, and returns how many there are; those beyond nine are
// cut off.
func fraction(b []byte) (d time.Duration, n int) {
	for unit := time.Second / 10; n < len(b) && b[n] >= '0' && b[n] <= '9'; n++ {
		d += time.Duration(b[n]-'0') * unit
		unit /= 10
	}
	return d, n
}

// units reads "1h30m", with d for days before the units of time.ParseDuration and perhaps blanks after units.
func units(s string) (time.Duration, bool) {
	if s == "" || s[0] == '+' || s[0] == '-' || s[len(s)-1] <= '9' { // a number without a unit
		return 0, false
	}
	for i := 1; i < len(s); i++ {
		if s[i] == ' ' && s[i-1] >= 'a' {
			s = s[:i] + s[i+1:]
		}
	}
	total := time.Duration(0)
	if n, rest, ok := strings.Cut(s, "d"); ok {
		v, _, err := Decimal(n, 9)
		if err != nil || v < 0 || v > math.MaxInt64/86400 {
			return 0, false
		}
		if total, s = time.Duration(v*86400), rest; s == "" {
			return total, true
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > math.MaxInt64-total {
		return 0, false
	}
	return total + d, true
}

// Between returns the time from start to end; ok is false if end comes first. Where times have no zone, an end up to an
// hour before its start is taken to be in the hour that occurs twice when clocks are set back for winter.
func Between(start, end time.Duration, zoneless bool) (d time.Duration, ok bool) {
	if end < start && zoneless && start-end <= time.Hour {
		end += time.Hour
	}
	return end - start, end >= start
}
