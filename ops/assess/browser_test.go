package assess

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// browser is the environment variable with the path of a Chromium. make browser sets it.
const browser = "CLUSTERGYM_CHROMIUM"

// shot opens a page in a window of so many pixels and returns its picture.
func shot(t *testing.T, page []byte, wide, high string, flags ...string) image.Image {
	t.Helper()
	program := os.Getenv(browser)
	if program == "" {
		t.Skip(browser + " names no Chromium (make browser does)")
	}
	dir, err := os.MkdirTemp("", "assess")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // child processes of the browser may still write there
	file, picture := filepath.Join(dir, "page.html"), filepath.Join(dir, "page.png")
	if err := os.WriteFile(file, page, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--headless", "--disable-gpu", "--disable-extensions", "--disable-background-networking",
		"--no-first-run", "--hide-scrollbars", "--enable-logging=stderr", "--user-data-dir=" + filepath.Join(dir, "profile"),
		"--window-size=" + wide + "," + high, "--screenshot=" + picture}
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox")
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	c := exec.CommandContext(ctx, program, append(append(args, flags...), "file://"+file)...) //nolint:gosec // the caller's browser
	c.WaitDelay = 5 * time.Second
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
	if strings.Contains(string(out), "CONSOLE") {
		t.Errorf("the page complains: %s", out)
	}
	b, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// The page is light or dark as the reader has it, and on a phone nothing is wider than the screen.
func TestBrowserPage(t *testing.T) {
	if os.Getenv(browser) == "" {
		t.Skip(browser + " names no Chromium (make browser does)")
	}
	jobs := history(t, spec(t, "4x8"), 32, 800, .85, "fifo+strict+easy", 5)
	a, err := Assess(t.Context(), Options{File: "jobs.txt", Jobs: jobs, Spec: spec(t, "4x8"), Cluster: "4x8"})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := a.HTML(&b); err != nil {
		t.Fatal(err)
	}
	for what, flags := range map[string][]string{"light": nil, "dark": {"--blink-settings=preferredColorScheme=0"}} {
		r, _, _, _ := shot(t, b.Bytes(), "1280", "1000", flags...).At(2, 2).RGBA()
		if (r > 0x8000) != (what == "light") {
			t.Errorf("the %s page has paper of %#x", what, r)
		}
	}
	phone := shot(t, b.Bytes(), "320", "900")
	paper := phone.At(1, 1)
	for y := range phone.Bounds().Dy() {
		for x := phone.Bounds().Dx() - 10; x < phone.Bounds().Dx(); x++ {
			if phone.At(x, y) != paper {
				t.Fatalf("the first screen goes beyond the edge of a phone, at %d, %d", x, y)
			}
		}
	}
}
