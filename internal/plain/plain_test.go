package plain

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNothingThatATerminalObeysIsLeft(t *testing.T) {
	for in, want := range map[string]string{
		"":                    "",
		"job 7, Müller – 日本":  "job 7, Müller – 日本",
		"\x1b[2Jgone":         "\ufffd[2Jgone",
		"\x1b]0;title\x07x":   "\ufffd]0;title\ufffdx",
		"a\u009b31mred":       "a\ufffd31mred", // CSI as one character
		"two\nlines\r\n":      "two\ufffdlines\ufffd\ufffd",
		"tab\there":           "tab\ufffdhere",
		"left\u202eright":     "left\ufffdright",
		"zero\u200bwidth":     "zero\ufffdwidth",
		"bad\xffbyte":         "bad\ufffdbyte",
		"kept \ufffd":         "kept \ufffd",
		"del\x7f":             "del\ufffd",
		"\x00":                "\ufffd",
		"line\u2028sep":       "line\ufffdsep",
		"\ufeffmark":          "\ufffdmark",
		"no-break\u00a0space": "no-break\ufffdspace",
	} {
		if got := Line(in); got != want {
			t.Errorf("Line(%q) = %q, expected %q", in, got, want)
		}
	}
}

func TestTextsKeepTheirLines(t *testing.T) {
	if got, want := Text("a\r\nb\tc\n\x1b[1m"), "a\nb\tc\n\ufffd[1m"; got != want {
		t.Errorf("got %q, expected %q", got, want)
	}
	if got, want := Text("over\rwritten"), "over\ufffdwritten"; got != want {
		t.Errorf("got %q, expected %q", got, want)
	}
}

func TestClipCutsAndPrints(t *testing.T) {
	for in, want := range map[string]string{
		"":                         "",
		"plain":                    "plain",
		"exactly8":                 "exactly8",
		"more than 8":              "more tha…",
		"ünïcödé":                  "ünïcödé",
		"a\nb\x1b[2J":              "a�b�[2J",
		"\u202egnp":                "�gnp",
		"\xff\xfe":                 "��",
		strings.Repeat("é", 1<<20): strings.Repeat("é", 8) + "…",
	} {
		if got := Clip(in, 8); got != want || !utf8.ValidString(got) {
			t.Errorf("%.20q: got %.40q, expected %q", in, got, want)
		}
	}
}

func TestACleanLineIsNotCopied(t *testing.T) {
	s := "resnet50-Müller"
	if n := testing.AllocsPerRun(100, func() { s = Line(s) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzLine(f *testing.F) {
	f.Add("\x1b[2J")
	f.Fuzz(func(t *testing.T, s string) {
		got := Line(s)
		if !utf8.ValidString(got) || Line(got) != got || utf8.RuneCountInString(got) != utf8.RuneCountInString(s) {
			t.Errorf("Line(%q) = %q", s, got)
		}
	})
}
