package dagplace

import (
	_ "embed" // the page's template

	"clustergym/env"
	"clustergym/env/page"
)

//go:embed page.md
var text string

// Page returns the environment's page for configuration cfg and specification s, as Markdown.
func Page(cfg Config, s env.Spec) string { return page.Of(text, cfg, s, nil) }
