package study

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"clustergym/internal/chrome"
)

// luminance is that of WCAG 2 for a colour as #rrggbb.
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	n, err := strconv.ParseUint(colour[1:], 16, 24)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		v := float64(n>>(16-8*i)&255) / 255
		if v <= 0.03928 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += weight * v
	}
	return sum
}

// Every colour of figures is seen on dark paper: as it is, or by the one that the page has for it.
func TestFiguresHaveColoursForDarkPaper(t *testing.T) {
	const paper = "#14171b"
	instead := map[string]string{}
	for _, m := range regexp.MustCompile(`svg \[(fill|stroke)="(#[0-9a-f]{6})"\] \{ (?:fill|stroke): (#[0-9a-f]{6}); \}`).FindAllStringSubmatch(style, -1) {
		instead[m[1]+m[2]] = m[3]
	}
	for _, c := range slices.Concat(palette, accents, greys) {
		for _, kind := range []string{"fill", "stroke"} {
			shown := c
			if d := instead[kind+c]; d != "" {
				shown = d
			}
			if ratio := (luminance(t, shown) + 0.05) / (luminance(t, paper) + 0.05); ratio < 4 {
				t.Errorf("%s %s is shown as %s, of contrast %.1f, want 4 or more", kind, c, shown, ratio)
			}
		}
	}
}

// The page of an experiment is readable in light and dark, and on a phone: nothing makes the page wider than the
// screen, the words of figures keep their size, and the figures lie on the page's own paper.
func TestBrowserShowsAnExperiment(t *testing.T) {
	program := os.Getenv(chrome.Variable)
	if program == "" {
		t.Skip(chrome.Variable + " names no Chromium (make browser does)")
	}
	dir := t.TempDir()
	mustRun(t, &toy{scale: 1}, dir, 1)
	p, err := chrome.Open(program, 1280, 900)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, c := range p.Complaints() {
			t.Errorf("the page complains: %.500s", c)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{1280, 390} {
			name := fmt.Sprintf("%s, %d px", scheme, width)
			var seen struct {
				Wide                int
				Paper, Figure, Word string
				Pixels              float64
			}
			for _, err := range []error{
				p.Scheme(scheme), p.Size(width, 844,
					1), p.Go("about:blank"), p.Go("file://" + filepath.ToSlash(filepath.Join(dir, "index.html"))),
				p.Wait(t.Context(), "document.readyState === 'complete' && !!document.querySelector('svg text')", 40*time.Second),
				p.Eval(`(() => {
					const fill = (e) => getComputedStyle(e).fill, word = [...document.querySelectorAll('svg text')].at(-1);
					return { Wide: document.documentElement.scrollWidth, Paper: getComputedStyle(document.body).backgroundColor,
						Figure: fill(document.querySelector('svg rect')), Word: fill(word), Pixels: word.getBoundingClientRect().height };
				})()`, &seen),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if seen.Wide > width {
				t.Errorf("%s: the page is %d px wide", name, seen.Wide)
			}
			if seen.Figure != seen.Paper || seen.Word == seen.Paper {
				t.Errorf("%s: a figure of %s with words of %s on %s", name, seen.Figure, seen.Word, seen.Paper)
			}
			if seen.Pixels < 11 {
				t.Errorf("%s: words of figures are %.1f px high", name, seen.Pixels)
			}
		}
	}
}
