package htmlpage

import (
	"bufio"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"strings"
)

// assets holds the page's style and program.
//
//go:embed assets/*.css assets/*.js
var assets embed.FS

// scripts are the parts of the program, in the order in which they are joined.
var scripts = []string{"format", "draw", "data", "axes", "curves", "charts", "results", "gantt", "figure", "page"}

// Drawing returns the parts of the program that other pages share: numbers and times for people (format), pens and
// colours (draw), axes, charts and differences (results), who held which GPU (gantt), and elements and figures
// (figure). What they expect of the page that joins them is said in each.
func Drawing() string {
	var b strings.Builder
	for _, s := range []string{"format", "draw", "axes", "results", "gantt", "figure"} {
		b.WriteString(asset(s + ".js"))
	}
	return b.String()
}

// Style returns the style of pages, in light and dark colours.
func Style() string { return asset("page.css") }

// asset returns a file of assets.
func asset(name string) string {
	b, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic("htmlpage: " + err.Error()) // impossible for an embedded file
	}
	return string(b)
}

// Write writes the page and returns w's error. It may be called again after further observations.
//
// Texts from outside cannot become markup: they are in one block of JSON in which <, > and & are escaped, and the
// program inserts them as text. The page's Content-Security-Policy forbids all connections, and all scripts except that
// program, which it names by digest.
func (p *Page) Write(w io.Writer) error {
	var program strings.Builder
	program.WriteString("\"use strict\";\n(function () {\n")
	for _, s := range scripts {
		program.WriteString(asset(s + ".js"))
	}
	program.WriteString("})();\n")
	style, script := "\n"+asset("page.css"), "\n"+program.String()

	b := bufio.NewWriterSize(w, 1<<16)
	_, _ = b.WriteString("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
	_, _ = b.WriteString(`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '` + digest(style) +
		`'; script-src '` + digest(script) + `'; base-uri 'none'; form-action 'none'">` + "\n")
	_, _ = b.WriteString(`<meta name="viewport" content="width=device-width, initial-scale=1">` + "\n")
	_, _ = b.WriteString(`<meta name="color-scheme" content="light dark">` + "\n")
	_, _ = b.WriteString("<title>" + html.EscapeString(p.Title) + "</title>\n" +
		"<style>" + style + "</style>\n</head>\n<body>\n")
	_, _ = b.WriteString("<noscript>This page draws its figures by a script that it contains; nothing is loaded from " +
		"elsewhere.</noscript>\n")
	_, _ = b.WriteString("<main id=\"page\"></main>\n<script type=\"application/json\" id=\"data\">")
	_, _ = b.Write(p.encode())
	_, _ = b.WriteString("</script>\n<script>" + script + "</script>\n</body>\n</html>\n")
	return b.Flush() // returns the first error of all writes
}

// digest returns the name of an inline block in a Content-Security-Policy.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// text returns s as JSON with <, > and & escaped.
func text(s string) []byte {
	b, _ := json.Marshal(s) // encoding a string cannot fail
	return b
}
