package queuerank

import (
	_ "embed" // the page's template

	"clustergym/env"
	"clustergym/env/encode"
	"clustergym/env/page"
)

var (
	//go:embed page.md
	text string
	//go:embed parts.md
	parts string // what the pages of all environments have in which the agent chooses the next job
)

// Page returns the environment's page for configuration cfg and specification s, as Markdown.
func Page(cfg Config, s env.Spec) string { return PageOf(text, cfg, s) }

// PageOf returns the page of an environment like QueueRank-v1: its template calls those of parts.md.
func PageOf(text string, cfg any, s env.Spec) string {
	return page.Of(parts+text, cfg, s, encode.Sections())
}

//go:embed ongoing.md
var ongoing string

// OngoingPage returns the page of version 2.
func OngoingPage(cfg Ongoing, s env.Spec) string { return PageOf(ongoing, cfg, s) }
