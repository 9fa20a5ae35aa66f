package sched

import (
	"fmt"
	"strings"

	"clustergym/env"
)

// InfoTable returns the part of an environment's page that lists the infos, as Markdown.
func InfoTable(info []env.Field) string {
	var b strings.Builder
	b.WriteString("## Info\n\n| key | unit | meaning |\n|---|---|---|\n")
	for _, f := range info {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", f.Name, f.Unit, f.Doc)
	}
	return b.String() + Metrics(info)
}

// Illegal is the sentence of an environment's page about actions that cannot be taken.
const Illegal = "An action that is masked or out of range is an error that changes nothing. Over the bridge, in Python too, a masked one is by\n" +
	"default no error but becomes the action that does nothing, or the lowest legal one; `invalid: error` refuses it there too."

// Metrics returns the paragraph of an environment's page that names the metrics among its infos, "" if there are none.
func Metrics(info []env.Field) string {
	var names []string
	for _, f := range info {
		if f.Metric {
			names = append(names, f.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "\nMetrics, which clients get with the last step of an episode: " + strings.Join(names, ", ") + ".\n"
}
