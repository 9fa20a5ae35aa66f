// Package page writes the pages of environments, in Markdown and in the manner of Gymnasium's pages, from their
// templates.
package page

import (
	_ "embed" // what pages share
	"fmt"
	"strings"
	"text/template"

	"clustergym/env"
)

// ongoing are the parts that pages of version 2 share: environments whose episodes are stretches of time of a cluster
// in operation.
//
//go:embed ongoing.md
var ongoing string

// illegal is the sentence about actions that cannot be taken.
const illegal = "An action that is masked or out of range is an error that changes nothing. " +
	"Over the bridge, in Python too, a masked one is by\n" +
	"default no error but becomes the action that does nothing, or the lowest legal one; " +
	"`invalid: error` refuses it there too."

// funcs are what every template can call.
var funcs = template.FuncMap{
	"fields": fields, "bounds": bounds, "info": info, "metrics": metrics,
	"illegal": func() string { return illegal },
	"add":     func(a, b int) int { return a + b },
	"half":    func(n int) int { return n / 2 },
	"here":    here,
}

// Of returns the page that the template text makes of an environment's settings, .Cfg, and its specification, .Spec.
// more are functions that it calls in addition to those of this package.
func Of(text string, cfg any, s env.Spec, more template.FuncMap) string {
	t := template.Must(template.New(s.ID).Funcs(funcs).Funcs(more).Parse(strings.TrimSpace(ongoing) + text))
	var b strings.Builder
	err := t.Execute(&b, struct {
		Cfg  any
		Spec env.Spec
	}{cfg, s})
	if err != nil {
		panic(fmt.Sprintf("page: the template of %s: %v", s.ID, err))
	}
	return b.String()
}

// here marks the value of a setting that is in force. Values with one meaning are listed with commas.
func here(values, set string) string {
	if strings.HasPrefix(values, set) {
		return values + " (this one)"
	}
	return values
}

// fields returns the table of observations, whose elements are in [0, 1].
func fields(all []env.Field) string {
	var b strings.Builder
	b.WriteString("| field | shape | unit | content |\n|---|---|---|---|\n")
	for _, f := range all {
		fmt.Fprintf(&b, "| %s | %v | %s | %s |\n", f.Name, f.Shape, f.Unit, strings.ReplaceAll(f.Doc, "|", "/"))
	}
	return b.String()
}

// bounds returns the table of observations with their bounds. quote stands around names.
func bounds(last, quote string, all []env.Field) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| field | shape | low | high | unit | %s |\n|---|---|---|---|---|---|\n", last)
	for _, f := range all {
		fmt.Fprintf(&b, "| %s%s%s | %v | %v | %v | %s | %s |\n", quote, f.Name, quote, f.Shape, f.Low, f.High, f.Unit,
			strings.ReplaceAll(f.Doc, "|", "\\|"))
	}
	return b.String()
}

// info returns the part that lists the infos.
func info(all []env.Field) string {
	var b strings.Builder
	b.WriteString("## Info\n\n| key | unit | meaning |\n|---|---|---|\n")
	for _, f := range all {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", f.Name, f.Unit, f.Doc)
	}
	return b.String() + metrics(all)
}

// metrics returns the paragraph that names the metrics among the infos, "" if there are none.
func metrics(all []env.Field) string {
	var names []string
	for _, f := range all {
		if f.Metric {
			names = append(names, f.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "\nMetrics, which clients get with the last step of an episode: " + strings.Join(names, ", ") + ".\n"
}
