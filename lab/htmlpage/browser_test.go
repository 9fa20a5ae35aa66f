package htmlpage

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"clustergym/simulator/sim"
)

// browser is the environment variable with the path of a Chromium. make browser sets it.
const browser = "CLUSTERGYM_CHROMIUM"

// chromium opens page and returns the browser's output: the document after some seconds.
func chromium(t *testing.T, page []byte, address string, flags ...string) string {
	t.Helper()
	program := os.Getenv(browser)
	if program == "" {
		t.Skip(browser + " names no Chromium (make browser does)")
	}
	dir, err := os.MkdirTemp("", "htmlpage")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // child processes of the browser may still write there
	file := filepath.Join(dir, "page.html")
	if err := os.WriteFile(file, page, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"--headless", "--disable-gpu", "--disable-extensions", "--disable-background-networking", "--no-first-run",
		"--hide-scrollbars",
		"--enable-logging=stderr", "--user-data-dir=" + filepath.Join(dir,
			"profile"), "--virtual-time-budget=4000", "--window-size=1280,1900",
	}
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox")
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	c := exec.CommandContext(ctx, program, append(append(args, flags...), "file://"+file+address)...) //nolint:gosec // the caller's browser
	c.WaitDelay = 5 * time.Second
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, said.String())
	}
	for line := range strings.Lines(said.String()) {
		if strings.Contains(line, "CONSOLE") {
			t.Errorf("the page complains: %s", line)
		}
	}
	return string(out)
}

// attribute returns the value of the attribute name in the document.
func attribute(t *testing.T, document, name string) string {
	t.Helper()
	m := regexp.MustCompile(` ` + name + `="([^"]*)"`).FindStringSubmatch(document)
	if m == nil {
		t.Fatalf("the document has no %s:\n%.400s", name, document)
	}
	return m[1]
}

func twoRuns(t *testing.T) *Page {
	p := New(2)
	p.Title = "two runs"
	p.Tables = []Table{{Title: "Metrics", Header: []string{"policy", "JCT"},
		Rows: [][]string{{"fifo", "1"}, {"srtf", "2"}}}}
	cfg := sim.DefaultConfig()
	cfg.Failures.MTBF, cfg.Failures.MTTR = time.Hour, time.Minute
	for _, o := range []string{"fifo", "srtf"} {
		simulate(t, cfg, short(t, "3x2"), mixed(120), policy(t, o), p.Run(o))
	}
	return p
}

func TestBrowserDrawsEveryStint(t *testing.T) {
	p := twoRuns(t)
	document := chromium(t, written(t, p), "#run=1", "--dump-dom")
	if s := attribute(t, document, "data-state"); s != "ready" {
		t.Errorf("state %q", s)
	}
	if n := strings.Count(document, "<tr>"); n != 3 {
		t.Errorf("%d rows in the table, want 3", n)
	}
	if n := strings.Count(document, "<canvas"); n != 4 {
		t.Errorf("%d figures, want 2 that compare and 2 schedules", n)
	}
	want := len(decode(t, p).Runs[1].Stints.Job)
	if got := attribute(t, document, "data-bars"); got != strconv.Itoa(want) {
		t.Errorf("%s bars are drawn, want %d", got, want)
	}
	if strings.Contains(chromium(t, written(t, p), "#run=1&view=map", "--dump-dom"), `data-bars="`+strconv.Itoa(want)) {
		t.Error("the map of node × time draws bars")
	}
}

// Each of many jobs has its own colour in the picture, and a dark page is dark.
func TestBrowserPictures(t *testing.T) {
	page := written(t, twoRuns(t))
	shot := func(flags ...string) image.Image {
		file := filepath.Join(t.TempDir(), "shot.png")
		chromium(t, page, "#run=0", append(flags, "--screenshot="+file)...)
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		return img
	}
	light, dark := shot(), shot("--blink-settings=preferredColorScheme=0")
	seen := map[color.Color]int{}
	for y := range light.Bounds().Dy() {
		for x := range light.Bounds().Dx() {
			seen[light.At(x, y)]++
		}
	}
	large := 0
	for _, n := range seen {
		if n >= 40 {
			large++
		}
	}
	if large < 80 {
		t.Errorf("%d colours in the picture; 120 jobs have one each", large)
	}
	for what, img := range map[string]image.Image{"light": light, "dark": dark} {
		r, _, _, _ := img.At(2, 2).RGBA()
		if (r > 0x8000) != (what == "light") {
			t.Errorf("the %s page has paper of %v", what, img.At(2, 2))
		}
	}
}

// A reader's actions move the view, and texts of the trace never become elements.
func TestBrowserFollowsTheReader(t *testing.T) {
	page := string(written(t, hostilePage(t)))
	// The page's policy lets no other program run, so the test removes the policy.
	i := strings.Index(page, "<meta http-equiv")
	j := i + strings.Index(page[i:], "\n")
	page = page[:i] + page[j:]
	driver := `<script>
const c = document.querySelector(".run canvas"), box = c.getBoundingClientRect(), told = [];
const tell = (what) => told.push(what + ": " + document.querySelector(".range").textContent);
const at = (x, y) => ({ clientX: box.left + x, clientY: box.top + y, bubbles: true, cancelable: true, button: 0, pointerId: 1 });
const key = (k) => c.dispatchEvent(new KeyboardEvent("keydown", { key: k, bubbles: true, cancelable: true }));
const press = (title) => document.querySelector('button[title="' + title + '"]').click();
const y = box.height - 90;
tell("start");
c.dispatchEvent(new WheelEvent("wheel", { ...at(box.width / 2, y), deltaY: -300 })); tell("wheel");
c.dispatchEvent(new WheelEvent("wheel", { ...at(box.width / 2, y), deltaY: -300, shiftKey: true })); tell("shift wheel");
key("0"); tell("0");
press("Zoom in"); tell("button");
c.dispatchEvent(new PointerEvent("pointerdown", at(400, y)));
c.dispatchEvent(new PointerEvent("pointermove", at(300, y)));
c.dispatchEvent(new PointerEvent("pointerup", at(300, y))); tell("drag");
key("ArrowLeft"); tell("left");
c.dispatchEvent(new MouseEvent("dblclick", at(300, y))); tell("double click");
window.scrollTo(0, document.body.scrollHeight);
let tip = "";
for (let x = 90; x < box.width && !tip.includes("job "); x += 10) {
  const now = c.getBoundingClientRect();
  c.dispatchEvent(new PointerEvent("pointermove", { clientX: now.left + x, clientY: now.top + y, bubbles: true }));
  tip = document.querySelector(".tip").textContent;
}
document.documentElement.dataset.tip = tip;
document.documentElement.dataset.markup = document.querySelectorAll("img, i, main b, main script, .tip script").length;
document.documentElement.dataset.told = told.join("; ");
window.dispatchEvent(new Event("beforeprint"));
document.documentElement.dataset.paper = document.querySelectorAll(".on-paper svg").length + " of " + document.querySelectorAll("canvas").length;
window.dispatchEvent(new Event("afterprint"));
document.documentElement.dataset.after = document.querySelectorAll(".on-paper, .drawing svg").length;
</script>`
	page = strings.Replace(page, "</body>", driver+"</body>", 1)
	document := chromium(t, []byte(page), "", "--dump-dom")
	if strings.Contains(document[:500], "data-owned") {
		t.Error("a job's name was run as a program")
	}
	if n := attribute(t, document, "data-markup"); n != "0" {
		t.Errorf("%s elements were made of texts", n)
	}
	if tip := attribute(t, document, "data-tip"); !strings.Contains(tip, "job ") || !strings.Contains(tip, "submitted") ||
		!strings.Contains(tip, "node ") {
		t.Errorf("over a bar stands %q", tip)
	}
	if p, a := attribute(t, document, "data-paper"), attribute(t, document, "data-after"); p != "3 of 3" || a != "0" {
		t.Errorf("%s figures are put on paper, %s stay", p, a)
	}
	told := map[string]string{}
	for part := range strings.SplitSeq(attribute(t, document, "data-told"), "; ") {
		what, view, _ := strings.Cut(part, ": ")
		told[what] = view
	}
	whole := told["start"]
	if !strings.HasPrefix(whole, "0 s to ") {
		t.Errorf("at first the view is %q", whole)
	}
	for _, c := range []struct{ what, before string }{{"wheel", whole}, {"shift wheel", told["wheel"]}, {"button", whole},
		{"drag", told["button"]}, {"left", told["drag"]}} {
		if told[c.what] == c.before || told[c.what] == "" {
			t.Errorf("%s changes nothing: %q", c.what, told[c.what])
		}
	}
	if told["0"] != whole || told["double click"] != whole || !strings.Contains(told["shift wheel"], "GPUs") {
		t.Errorf("views %v", told)
	}
}
