package traces

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDatesAreReadAsTimePackageReadsThem(t *testing.T) {
	for text, want := range map[string]struct {
		at    string
		zoned bool
	}{
		"2024-03-01T12:00:00Z":                {"2024-03-01T12:00:00Z", true},
		"2024-03-01t12:00:00z":                {"2024-03-01T12:00:00Z", true},
		"2024-03-01 12:00:00":                 {"2024-03-01T12:00:00Z", false},
		"2024-03-01T12:00":                    {"2024-03-01T12:00:00Z", false},
		"2024-03-01":                          {"2024-03-01T00:00:00Z", false},
		"2024-02-29 23:59:59.25":              {"2024-02-29T23:59:59.25Z", false},
		"2024-03-01T12:00:00,5":               {"2024-03-01T12:00:00.5Z", false},
		"2024-03-01 12:00:00.123456789123":    {"2024-03-01T12:00:00.123456789Z", false},
		"2024-03-01T12:00:00+01:00":           {"2024-03-01T11:00:00Z", true},
		"2024-03-01T12:00:00.5-0530":          {"2024-03-01T17:30:00.5Z", true},
		"2024-03-01 12:00:00+02":              {"2024-03-01T10:00:00Z", true},
		"2024-03-01 12:00:00 UTC":             {"2024-03-01T12:00:00Z", true},
		"2024-03-01 12:00:00.000000 +00:00":   {"2024-03-01T12:00:00Z", true},
		"1970-01-01T00:00:00Z":                {"1970-01-01T00:00:00Z", true},
		"2199-12-31 23:59:59":                 {"2199-12-31T23:59:59Z", false},
		"1970-01-01 01:00:00+01:00":           {"1970-01-01T00:00:00Z", true},
		"2024-03-01T12:00:00.999999999+14:00": {"2024-02-29T22:00:00.999999999Z", true},
	} {
		ref, err := time.Parse(time.RFC3339Nano, want.at)
		if err != nil {
			t.Fatal(err)
		}
		at, zoned, ok := ParseDate([]byte(text))
		if !ok || at != time.Duration(ref.UnixNano()) || zoned != want.zoned {
			t.Errorf("%s: %v, zone %v, %v; want %+v", text, at, zoned, ok, want)
		}
	}
}

func TestWhatIsNoDateIsRefused(t *testing.T) {
	for _, text := range []string{"", "12", "03/04/2024", "03/04/2024 12:00", "01-03-2024 12:00:00", "2024/03/01",
		"2024-3-1", "2024-13-01", "2024-00-01", "2024-02-30", "2023-02-29",
		"2024-03-00", "2024-03-01T", "2024-03-01 1:00:00", "2024-03-01T24:00:00", "2024-03-01T12:60:00",
		"2024-03-01T12:00:60", "2024-03-01T12:00:", "2024-03-01T12:00:0", "2024-03-01T12:00:00.",
		"2024-03-01T12:00:00.Z", "2024-03-01T12:00.5", "2024-03-01T12:00:00 ", "2024-03-01T12:00:00+1",
		"2024-03-01T12:00:00+25:00", "2024-03-01T12:00:00+01:60", "2024-03-01T12:00:00 CET",
		"2024-03-01 12:00:00 AM", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00+01:00", "2200-01-01", "20240301T120000",
		"2024-03-01x12:00:00", "2024-o3-01", "２０２４-03-01"} {
		if at, _, ok := ParseDate([]byte(text)); ok {
			t.Errorf("%q was read as %v", text, at)
		}
	}
}

func TestDurationsOfProgramsAreRead(t *testing.T) {
	const h, m, s = time.Hour, time.Minute, time.Second
	for text, want := range map[string]time.Duration{
		"1h30m": h + 30*m, "1h 30m": h + 30*m, "90s": 90 * s, "1.5h": h + 30*m, "250ms": s / 4, "2d": 48 * h,
		"1d2h3m4s": 26*h + 3*m + 4*s, "0.5d": 12 * h, "1d 12h": 36 * h,
		"00:00:00": 0, "02:03:04": 2*h + 3*m + 4*s, "2:03:04": 2*h + 3*m + 4*s, "100:00:00": 100 * h, "00:00:01.25": s + s/4,
		"1-02:03:04": 26*h + 3*m + 4*s, "10-00:00:00": 240 * h, "0-00:00:01": s,
		"1 day, 2:03:04": 26*h + 3*m + 4*s, "2 days, 0:00:05.250000": 48*h + 5*s + s/4, "0 days 00:10:00": 10 * m,
		"3 days 01:00:00.5": 73*h + s/2, "2 days": 48 * h,
	} {
		if got, ok := ParseDuration([]byte(text)); !ok || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "1", "1.5", "-1h", "+1h", "h", "1x", "1 0m", "12:34", "02:60:00", "02:00:60",
		"2:3:4", "-02:03:04", "-1 day, 23:59:59", "1 week, 2:03:04", "1-2-03:04:05", "1:02:03:04",
		"02:03:04.", "02:03:04x", "1 day,", "day, 2:03:04", "99999999:00:00", "9999999:00:00", "200000 days", "200000d",
		"300y", "106751 days, 23:59:59", "12:00:00 PM", "an hour", "1d-2h", "NaN"} {
		if got, ok := ParseDuration([]byte(text)); ok {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

// Whatever Go, Slurm and Python would print for a duration is read back as that duration.
func TestPrintedDurationsAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, math.MaxInt64/2).Draw(t, "d")).Truncate(time.Microsecond)
		whole := d / time.Second
		clock := func(hours string) string {
			return hours + time.Unix(int64(whole), 0).UTC().Format(":04:05")
		}
		hours := itoa(int64(whole / 3600 % 24))
		n := itoa(int64(whole / 86400))
		micro := ""
		if us := d % time.Second / time.Microsecond; us > 0 {
			micro = "." + itoa(int64(us + 1e6))[1:]
		}
		for _, text := range []string{d.String(), n + "-" + clock(hours) + micro, n + " days, " + clock(hours) + micro,
			n + " days " + clock(hours) + micro} {
			if got, ok := ParseDuration([]byte(text)); !ok || got != d {
				t.Fatalf("%q: %v, %v; want %v", text, got, ok, d)
			}
		}
	})
}

func itoa(v int64) string { return string(AppendDecimal(nil, v, 0)) }

func FuzzTimes(f *testing.F) {
	for _, s := range []string{"2024-03-01T12:00:00.5+01:00", "1 day, 2:03:04", "1-02:03:04", "1d2h",
		"106751 days, 23:47:16.854775807"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if at, _, ok := ParseDate(b); ok && (at < 0 || at > 230*366*24*time.Hour) {
			t.Errorf("date %q: %v", b, at)
		}
		if d, ok := ParseDuration(b); ok && d < 0 {
			t.Errorf("duration %q: %v", b, d)
		}
	})
}
