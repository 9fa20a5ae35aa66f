package workerplace

import (
	_ "embed" // the page's template
	"text/template"

	"clustergym/env"
	"clustergym/env/page"
)

//go:embed page.md
var text string

// Page is the environment's page in Markdown, for one configuration.
func Page(cfg Config, s env.Spec) string {
	return page.Of(text, cfg, s, template.FuncMap{
		"workerMemory": func() int { return workerMemory },
		"maxArrivals":  func() int { return maxArrivals },
		"types":        func() int { return Types },
	})
}
