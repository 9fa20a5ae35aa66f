package schedview

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

// The page's style and program. The program's parts are put together in the order of scripts.
//
//go:embed assets/*.css assets/*.js
var assets embed.FS

var scripts = []string{"format", "draw", "data", "axes", "curves", "charts", "gantt", "page"}

func asset(name string) string {
	b, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic("schedview: " + err.Error()) // embedded
	}
	return string(b)
}

// Write writes the page. What w says of a failure is returned. It may be called again after more was observed.
//
// Nothing that comes from outside becomes markup: it stands in one block of JSON, in which <, > and & are escaped,
// and the program sets it as text. A policy of the page's own forbids every script but that program, by its
// digest, and every connection.
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
	_, _ = b.WriteString("<title>" + html.EscapeString(p.Title) + "</title>\n<style>" + style + "</style>\n</head>\n<body>\n")
	_, _ = b.WriteString("<noscript>This page draws its figures by a script that it contains; nothing is loaded from elsewhere.</noscript>\n")
	_, _ = b.WriteString("<main id=\"page\"></main>\n<script type=\"application/json\" id=\"data\">")
	_, _ = b.Write(p.encode())
	_, _ = b.WriteString("</script>\n<script>" + script + "</script>\n</body>\n</html>\n")
	return b.Flush() // the writer keeps its first failure
}

// digest is how a Content-Security-Policy names an inline block.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// text is s as JSON in which <, > and & are escaped.
func text(s string) []byte {
	b, _ := json.Marshal(s) // strings have a JSON form
	return b
}
