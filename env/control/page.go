package control

import (
	"embed"
	"fmt"
	"math"
	"strings"
	"text/template"

	"clustergym/env"
	"clustergym/env/page"
)

// pages are the templates of the problems' pages, and the sentences that those of Gymnasium's problems have in common.
//
//go:embed pages
var pages embed.FS

// Page returns the page of the environment called id, in Markdown and with the headings of Gymnasium's pages:
// description, actions, observations with bounds and units, reward, start, end, arguments, versions. It returns "" for
// an id that IDs does not list.
func Page(id string) string {
	for _, d := range definitions() {
		if d.spec.ID == id {
			return page.Of(text(id), nil, d.spec, template.FuncMap{
				"spaces": spaces, "gymnasium": func() string { return text("gymnasium") },
			})
		}
	}
	return ""
}

// text returns one of pages.
func text(name string) string {
	b, err := pages.ReadFile("pages/" + name + ".md")
	if err != nil {
		panic(err) // it is embedded
	}
	return string(b)
}

// spaces returns how a page begins.
func spaces(s env.Spec) string {
	return fmt.Sprintf("# %s\n\n| | |\n|---|---|\n| Action space | %s |\n| Observation space | %s |\n"+
		"| Steps at most | %s |\n| Solved at a mean return of | %s |\n\n",
		s.ID, actionSpace(s.Action), dict(s.Obs), orNone(s.MaxSteps > 0, s.MaxSteps), orNone(!math.IsNaN(s.Solved), s.Solved))
}

// actionSpace names the space as Gymnasium does. The bounds of a Box are equal in every dimension here.
func actionSpace(a env.ActionSpec) string {
	if len(a.Sizes) > 0 {
		return fmt.Sprintf("Discrete(%d)", a.Sizes[0])
	}
	return fmt.Sprintf("Box(%v, %v, [%d], float32)", a.Low[0], a.High[0], len(a.Low))
}

func dict(fields []env.Field) string {
	var parts []string
	for _, f := range fields {
		parts = append(parts, fmt.Sprintf("`%s` Box(%v, %v, %v, float32)", f.Name, f.Low, f.High, f.Shape))
	}
	return strings.Join(parts, ", ")
}

func orNone(ok bool, v any) string {
	if !ok {
		return "none"
	}
	return fmt.Sprint(v)
}
