package study

import (
	"bufio"
	"crypto/sha256"
	_ "embed" // the page's style
	"encoding/base64"
	"fmt"
	"html"
	"io"
)

//go:embed page.css
var style string

// writePage writes index.html, which needs no other files and contains no scripts. Everything that comes from outside
// is escaped.
func (r *Report) writePage(w io.Writer) error {
	b := bufio.NewWriter(w)
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(b, format, args...) } // Flush returns the first error
	sum := sha256.Sum256([]byte(style))
	p("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
	p("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-%s'; base-uri "+
		"'none'; form-action 'none'\">\n", base64.StdEncoding.EncodeToString(sum[:]))
	p("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" " +
		"content=\"light dark\">\n")
	title := html.EscapeString(r.Study.Title)
	p("<title>%s</title>\n<style>%s</style>\n</head>\n<body>\n<main>\n<h1>%s</h1>\n<dl class=\"facts\">\n", title, style,
		title)
	for _, f := range r.facts() {
		p("<div><dt>%s</dt><dd>%s</dd></div>\n", html.EscapeString(f[0]), html.EscapeString(f[1]))
	}
	p("</dl>\n")
	if len(r.claims) > 0 {
		p("<h2>The paper’s figures, and ours</h2>\n")
		header, lines := r.claimed()
		writeGrid(p, header, lines, 2)
	}
	for _, f := range r.figures {
		p("<figure tabindex=\"0\">\n%s</figure>\n", f.svg)
	}
	for i := range r.Results.tables {
		t := r.sheet(&r.Results.tables[i], false)
		if len(t.lines) == 0 {
			continue
		}
		p("<h2>%s</h2>\n", html.EscapeString(t.title))
		writeGrid(p, t.header, t.lines, t.left)
		for _, n := range r.Results.tables[i].Notes {
			p("<p class=\"note\">%s</p>\n", html.EscapeString(n))
		}
	}
	if len(r.notes) > 0 {
		p("<h2>Notes</h2>\n")
		for _, n := range r.notes {
			p("<p class=\"note\">%s</p>\n", html.EscapeString(n))
		}
	}
	if s := r.deviation.String(); s != "" {
		p("<h2>Beside what was expected</h2>\n<pre>%s</pre>\n", html.EscapeString(s))
	}
	p("</main>\n</body>\n</html>\n")
	return b.Flush()
}

// writeGrid writes a table whose first left columns are aligned left.
func writeGrid(p func(string, ...any), header []string, lines [][]string, left int) {
	row := func(tag string, words []string) {
		p("<tr>")
		for i, s := range words {
			class := ""
			if i < left {
				class = " class=\"left\""
			}
			p("<%s%s>%s</%s>", tag, class, html.EscapeString(s), tag)
		}
		p("</tr>\n")
	}
	p("<div class=\"wide\" tabindex=\"0\"><table>\n<thead>\n")
	row("th", header)
	p("</thead>\n<tbody>\n")
	for _, l := range lines {
		row("td", l)
	}
	p("</tbody>\n</table></div>\n")
}
