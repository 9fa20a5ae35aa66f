package control

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"clustergym/env"
)

// Page returns the page of the environment called id, in Markdown and with the headings of Gymnasium's pages:
// description, actions, observations with bounds and units, reward, start, end, arguments, versions. It returns "" for
// an id that IDs does not list.
func Page(id string) string {
	for _, d := range definitions() {
		if d.spec.ID == id {
			return d.page()
		}
	}
	return ""
}

func (d *definition) page() string {
	var b strings.Builder
	s := d.spec
	fmt.Fprintf(&b, "# %s\n\n", s.ID)
	fmt.Fprintf(&b, "| | |\n|---|---|\n| Action space | %s |\n| Observation space | %s |\n| Steps at most | %s |\n| Solved at a mean return of | %s |\n\n",
		actionSpace(s.Action), dict(s.Obs), orNone(s.MaxSteps > 0, s.MaxSteps), orNone(!math.IsNaN(s.Solved), s.Solved))
	section := func(title, text string) { fmt.Fprintf(&b, "## %s\n\n%s\n\n", title, text) }
	section("Description", d.about)
	section("Action space", d.actions)
	b.WriteString("## Observation space\n\n| field | shape | low | high | unit | meaning |\n|---|---|---|---|---|---|\n")
	for _, f := range s.Obs {
		fmt.Fprintf(&b, "| `%s` | %v | %v | %v | %s | %s |\n", f.Name, f.Shape, f.Low, f.High, f.Unit, f.Doc)
	}
	b.WriteString("\n")
	section("Rewards", d.rewards)
	section("Starting state", d.start)
	section("Episode end", d.end)
	section("Known answer", d.answer)
	if d.task != "" {
		section("Tasks", d.task)
	}
	section("Arguments", cmp.Or(d.args, "None."))
	section("Version history", cmp.Or(d.history, "- v1: the first."))
	section("Source", d.source)
	return strings.TrimRight(b.String(), "\n") + "\n"
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
