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

// ArgumentTable returns the part that lists the arguments, as Markdown: key, current value, possible values.
func ArgumentTable(args [][3]string) string {
	var b strings.Builder
	b.WriteString("## Arguments\n\n| key | here | values |\n|---|---|---|\n")
	for _, a := range args {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", a[0], a[1], a[2])
	}
	return b.String()
}
