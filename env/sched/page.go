package sched

import (
	"fmt"
	"strings"

	"clustergym/env"
)

// InfoTable is the part of an environment's page that lists the infos.
func InfoTable(info []env.Field) string {
	var b strings.Builder
	b.WriteString("## Info\n\n| key | unit | meaning |\n|---|---|---|\n")
	for _, f := range info {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", f.Name, f.Unit, f.Doc)
	}
	return b.String()
}

// ArgumentTable is the part that lists arguments: key, value here, values that can be.
func ArgumentTable(args [][3]string) string {
	var b strings.Builder
	b.WriteString("## Arguments\n\n| key | here | values |\n|---|---|---|\n")
	for _, a := range args {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", a[0], a[1], a[2])
	}
	return b.String()
}
