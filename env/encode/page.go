package encode

import (
	_ "embed" // the parts of pages
	"strings"
	"text/template"
)

var (
	//go:embed running.md
	runningSection string
	//go:embed truth.md
	truthSection string
	//go:embed forecasts.md
	forecastsSection string
	//go:embed held.md
	heldSection string
)

// Sections returns what the templates of environments' pages call for the parts that describe fields of this package,
// as Markdown.
func Sections() template.FuncMap {
	return template.FuncMap{
		"forecasts": forecastSection,
		"running":   func() string { return runningSection },
		"truth":     func() string { return truthSection },
	}
}

// forecastSection returns the part about forecasts, the numbers fcQuantiles to fcVCWaiting. where says where they are;
// held is whether there is a field of Held.
func forecastSection(where string, held bool) string {
	field := ""
	if held {
		field = heldSection
	}
	return strings.NewReplacer("{where}", where, "{held}", field).Replace(forecastsSection)
}
