package options

import (
	"strings"

	"clustergym/configs"
)

// Indented returns a configuration as YAML for a help text.
func Indented(cfg any) string {
	text, err := configs.Encode(cfg)
	if err != nil {
		return ""
	}
	return "  " + strings.ReplaceAll(strings.TrimRight(string(text), "\n"), "\n", "\n  ")
}

// Wrapped joins names into lines that fit the help texts.
func Wrapped(names []string) string {
	var b strings.Builder
	width := 30
	for i, n := range names {
		if i > 0 {
			b.WriteString(",")
			if width += len(n) + 2; width > 110 {
				b.WriteString("\n")
				width = len(n)
			} else {
				b.WriteString(" ")
			}
		}
		b.WriteString(n)
	}
	return b.String()
}
