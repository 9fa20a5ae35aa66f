// Package chrome opens pages in a Chromium for tests: what they ask the network for, what they complain about, how they
// look. chromedp drives the browser. It is not for programs.
package chrome

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Variable is the environment variable with the path of a Chromium. make browser sets it.
const Variable = "CLUSTERGYM_CHROMIUM"

// answer is how long one call of the browser may take: milliseconds on an idle machine.
const answer = time.Minute

// Page is a page in a browser of its own. Its methods are safe for concurrent use.
type Page struct {
	ctx  context.Context // chromedp's, from which each call takes one with a time limit
	said output

	mu       sync.Mutex
	requests []string
	console  []string
}

// output holds what the browser writes to its standard error.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// Open starts the browser at path program with an empty page of a size in pixels.
func Open(program string, width, height int) (*Page, error) {
	p := &Page{}
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(program), chromedp.WindowSize(width, height), chromedp.CombinedOutput(&p.said),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("mute-audio", true), chromedp.DisableGPU,
		chromedp.Flag("font-render-hinting", "none"), chromedp.Flag("disable-lcd-text", true))
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox)
	}
	ctx, _ := chromedp.NewExecAllocator(context.Background(), opts...) //nolint:govet // Close ends it
	p.ctx, _ = chromedp.NewContext(ctx, chromedp.WithListener(p.event))
	// The browser lives as long as the context of its first call, so this one has no time limit.
	_, err := chromedp.Call(p.ctx, network.Enable, network.EnableParams{})
	if err == nil {
		_, err = call(p, log.Enable, cdp.Empty{})
	}
	if err == nil {
		err = p.Size(width, height, 1)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w\n%.2000s", program, err, p.said.String()), p.Close())
	}
	return p, nil
}

// Close ends the browser.
func (p *Page) Close() error {
	ctx, stop := context.WithTimeout(p.ctx, answer)
	defer stop()
	return chromedp.Cancel(ctx)
}

func (p *Page) event(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	case *runtime.EventExceptionThrown, *runtime.EventConsoleAPICalled:
		text, err := json.Marshal(e)
		p.console = append(p.console, fmt.Sprint(string(text), err))
	case *log.EventEntryAdded:
		// That a server is away is part of the tests.
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork {
			p.console = append(p.console, e.Entry.Text)
		}
	}
}

// call calls a command of the protocol.
func call[P, R any](p *Page, c cdp.Command[P, R], params P) (R, error) {
	ctx, stop := context.WithTimeout(p.ctx, answer)
	defer stop()
	r, err := chromedp.Call(ctx, c, params)
	if err != nil {
		err = fmt.Errorf("%s: %w\n%.2000s", c.Method, err, p.said.String())
	}
	return r, err
}

// Go opens an address.
func (p *Page) Go(url string) error {
	_, err := call(p, page.Navigate, page.NavigateParams{URL: url})
	return err
}

// Size sets the size of the page in pixels of CSS, each of which is scale × scale pixels of pictures.
func (p *Page) Size(width, height int, scale float64) error {
	_, err := call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: int64(width), Height: int64(height), DeviceScaleFactor: scale, Mobile: width < 500,
	})
	return err
}

// Scheme sets what the reader's system prefers: light or dark.
func (p *Page) Scheme(scheme string) error {
	_, err := call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	return err
}

// Eval evaluates an expression, waits if it is a promise, and decodes its value into v, which may be nil.
func (p *Page) Eval(expression string, v any) error {
	ctx, stop := context.WithTimeout(p.ctx, answer)
	defer stop()
	b, err := chromedp.Run(ctx, chromedp.Evaluate[[]byte](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		return fmt.Errorf("%s: %w", expression, err)
	}
	if v == nil || len(b) == 0 {
		return nil
	}
	return json.Unmarshal(b, v)
}

// Wait waits until an expression is true. The error has the page's text.
func (p *Page) Wait(ctx context.Context, expression string, most time.Duration) error {
	ctx, stop := context.WithTimeout(ctx, most)
	defer stop()
	for {
		var ok bool
		err := p.Eval("!!("+expression+")", &ok)
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			var text string
			_ = p.Eval("document.body ? document.body.innerText : ''", &text) // the error comes first
			return fmt.Errorf("%s is not true after %v (%w; %v); the page says %.1500q",
				expression, most, ctx.Err(), err, text)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Key presses a key, as "ArrowRight" or "n".
func (p *Page) Key(key string) error {
	down := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: key, Code: key}
	if len(key) == 1 {
		down.Text = key
	}
	_, err := call(p, input.DispatchKeyEvent, down)
	if err != nil {
		return err
	}
	_, err = call(p, input.DispatchKeyEvent,
		input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: key, Code: key})
	return err
}

// Picture returns the page as PNG, what one sees of it or all.
func (p *Page) Picture(whole bool) ([]byte, error) {
	r, err := call(p, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &whole})
	if err != nil {
		return nil, err
	}
	return r.Data, nil
}

// Elsewhere returns the requests that go neither to one of hosts nor to data in the page.
func (p *Page) Elsewhere(hosts ...string) (out []string) {
	own := []string{"data:", "blob:"}
	for _, h := range hosts {
		own = append(own, "http://"+h+"/")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		if r != "about:blank" && !slices.ContainsFunc(own, func(s string) bool { return strings.HasPrefix(r, s) }) {
			out = append(out, r)
		}
	}
	return out
}

// Complaints returns what the page said to its console and its errors.
func (p *Page) Complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.console)
}
