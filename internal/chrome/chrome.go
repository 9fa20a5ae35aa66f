// Package chrome drives a Chromium for tests, through the pipe of its debugging protocol. It is not for programs.
package chrome

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Variable is the environment variable with the path of a Chromium. make browser sets it.
const Variable = "CLUSTERGYM_CHROMIUM"

// Page is a page in a browser of its own. Its methods are safe for concurrent use.
type Page struct {
	cmd  *exec.Cmd
	dir  string
	in   io.Closer
	out  io.Writer
	said *bytes.Buffer
	done chan struct{}

	write sync.Mutex

	mu       sync.Mutex
	session  string
	next     int
	replies  map[int]chan message
	requests []string
	console  []string
}

type message struct {
	ID     int             `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
	Session string `json:"sessionId,omitempty"`
}

// Open starts the browser at path program with an empty page of a size in pixels.
func Open(program string, width, height int) (p *Page, err error) {
	dir, err := os.MkdirTemp("", "chrome")
	if err != nil {
		return nil, err
	}
	toRead, toWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fromRead, fromWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	args := []string{
		"--headless", "--disable-gpu", "--disable-extensions", "--disable-background-networking", "--no-first-run", "--hide-scrollbars", "--mute-audio",
		"--disable-component-update", "--disable-default-apps", "--disable-sync", "--remote-debugging-pipe", "--user-data-dir=" + filepath.Join(dir, "profile"),
		"--force-color-profile=srgb", "--font-render-hinting=none", "--disable-lcd-text", fmt.Sprintf("--window-size=%d,%d", width, height),
	}
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox")
	}
	p = &Page{dir: dir, in: toWrite, out: toWrite, said: new(bytes.Buffer), done: make(chan struct{}), replies: map[int]chan message{}}
	p.cmd = exec.Command(program, append(args, "about:blank")...) //nolint:gosec // the caller's browser
	p.cmd.ExtraFiles = []*os.File{toRead, fromWrite}              // file descriptors 3 and 4
	p.cmd.Stderr = p.said
	p.cmd.WaitDelay = 5 * time.Second
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	_, _ = toRead.Close(), fromWrite.Close() // they are the browser's
	go p.read(fromRead)
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	var list struct {
		Infos []struct {
			ID   string `json:"targetId"`
			Type string `json:"type"`
		} `json:"targetInfos"`
	}
	for range 100 {
		if err := p.call("Target.getTargets", nil, &list); err != nil {
			return nil, err
		}
		for _, t := range list.Infos {
			if t.Type != "page" {
				continue
			}
			var at struct {
				Session string `json:"sessionId"`
			}
			if err := p.call("Target.attachToTarget", map[string]any{"targetId": t.ID, "flatten": true}, &at); err != nil {
				return nil, err
			}
			p.mu.Lock()
			p.session = at.Session
			p.mu.Unlock()
			for _, m := range []string{"Page.enable", "Runtime.enable", "Network.enable", "Log.enable"} {
				if err := p.call(m, nil, nil); err != nil {
					return nil, err
				}
			}
			return p, p.Size(width, height, 1)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, errors.New("the browser has no page")
}

// Close ends the browser.
func (p *Page) Close() error {
	_ = p.cmd.Process.Kill() // it keeps nothing
	_ = p.cmd.Wait()
	_ = p.in.Close()
	for range 50 { // child processes may still write
		if os.RemoveAll(p.dir) == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return os.RemoveAll(p.dir)
}

func (p *Page) read(r io.ReadCloser) {
	defer r.Close() //nolint:errcheck // only read
	defer close(p.done)
	in := bufio.NewReaderSize(r, 1<<20)
	for {
		b, err := in.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(bytes.TrimSuffix(b, []byte{0}), &m) != nil {
			continue
		}
		p.mu.Lock()
		if m.ID > 0 {
			if c := p.replies[m.ID]; c != nil {
				delete(p.replies, m.ID)
				c <- m
			}
		} else {
			p.event(&m)
		}
		p.mu.Unlock()
	}
}

func (p *Page) event(m *message) {
	switch m.Method {
	case "Network.requestWillBeSent":
		var e struct {
			Request struct {
				URL string `json:"url"`
			} `json:"request"`
		}
		if json.Unmarshal(m.Params, &e) == nil {
			p.requests = append(p.requests, e.Request.URL)
		}
	case "Runtime.exceptionThrown", "Runtime.consoleAPICalled":
		p.console = append(p.console, string(m.Params))
	case "Log.entryAdded":
		var e struct {
			Entry struct {
				Source, Level, Text string
			} `json:"entry"`
		}
		// That a server is away is part of the tests.
		if json.Unmarshal(m.Params, &e) == nil && e.Entry.Level == "error" && e.Entry.Source != "network" {
			p.console = append(p.console, e.Entry.Text)
		}
	}
}

// call calls a method of the protocol.
func (p *Page) call(method string, params, result any) error {
	if params == nil {
		params = struct{}{}
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	c := make(chan message, 1)
	p.mu.Lock()
	p.next++
	id := p.next
	p.replies[id] = c
	m := message{ID: id, Method: method, Params: raw, Session: p.session}
	p.mu.Unlock()
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	p.write.Lock()
	_, err = p.out.Write(append(b, 0))
	p.write.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case r := <-c:
		if r.Error != nil {
			return fmt.Errorf("%s: %s", method, r.Error.Message)
		}
		if result != nil {
			return json.Unmarshal(r.Result, result)
		}
		return nil
	case <-p.done:
		return fmt.Errorf("%s: the browser has ended\n%.2000s", method, p.said)
	case <-time.After(60 * time.Second):
		return fmt.Errorf("%s: the browser does not answer", method)
	}
}

// Go opens an address.
func (p *Page) Go(url string) error {
	return p.call("Page.navigate", map[string]any{"url": url}, nil)
}

// Size sets the size of the page in pixels of CSS, each of which is scale × scale pixels of pictures.
func (p *Page) Size(width, height int, scale float64) error {
	return p.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 500}, nil)
}

// Scheme sets what the reader's system prefers: light or dark.
func (p *Page) Scheme(scheme string) error {
	return p.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]string{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Eval evaluates an expression, waits if it is a promise, and decodes its value into v, which may be nil.
func (p *Page) Eval(expression string, v any) error {
	var r struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	if err := p.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r); err != nil {
		return err
	}
	if r.Exception != nil {
		return fmt.Errorf("%s: %s %s", expression, r.Exception.Text, r.Exception.Exception.Description)
	}
	if v == nil || len(r.Result.Value) == 0 {
		return nil
	}
	return json.Unmarshal(r.Result.Value, v)
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
			return fmt.Errorf("%s is not true after %v (%w; %v); the page says %.1500q", expression, most, ctx.Err(), err, text)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Key presses a key, as "ArrowRight" or "n".
func (p *Page) Key(key string) error {
	for _, kind := range []string{"keyDown", "keyUp"} {
		params := map[string]any{"type": kind, "key": key, "code": key}
		if len(key) == 1 && kind == "keyDown" {
			params["text"] = key
		}
		if err := p.call("Input.dispatchKeyEvent", params, nil); err != nil {
			return err
		}
	}
	return nil
}

// Picture returns the page as PNG, what one sees of it or all.
func (p *Page) Picture(whole bool) ([]byte, error) {
	var r struct {
		Data string `json:"data"`
	}
	if err := p.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": whole}, &r); err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(r.Data)
}

// Requests returns the addresses of all requests so far.
func (p *Page) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.requests...)
}

// Elsewhere returns the requests that go neither to one of hosts nor to data in the page.
func (p *Page) Elsewhere(hosts ...string) (out []string) {
next:
	for _, r := range p.Requests() {
		for _, h := range append(hosts, "") {
			if h != "" && strings.HasPrefix(r, "http://"+h+"/") || strings.HasPrefix(r, "data:") || strings.HasPrefix(r, "blob:") || r == "about:blank" {
				continue next
			}
		}
		out = append(out, r)
	}
	return out
}

// Complaints returns what the page said to its console and its errors.
func (p *Page) Complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.console...)
}
