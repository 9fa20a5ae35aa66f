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
	return b.String()
}
