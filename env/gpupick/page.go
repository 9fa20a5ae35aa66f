package gpupick

import (
	_ "embed" // the page's template

	"clustergym/env"
	"clustergym/env/encode"
	"clustergym/env/page"
)

//go:embed page.md
var text string

// Page returns the environment's page for configuration cfg and specification s, as Markdown.
func Page(cfg Config, s env.Spec) string {
	funcs := encode.Sections()
	funcs["rowLen"] = func() int { return rowLen }
	return page.Of(text, cfg, s, funcs)
}

// OngoingPage is Page of version 2.
func OngoingPage(cfg Ongoing, s env.Spec) string {
	funcs := encode.Sections()
	funcs["rowLen"] = func() int { return rowLen }
	return page.Of(text, cfg, s, funcs)
}
