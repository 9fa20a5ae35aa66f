package pages

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"clustergym/bridge/server"
)

const (
	aToken     = "0123456789abcdef-admin"
	otherToken = "0123456789abcdef-other"
)

// visit makes a request with a cookie and heads, and follows no redirect.
func visit(t *testing.T, r *http.Request) (*http.Response, string) {
	t.Helper()
	resp, err := http.DefaultTransport.RoundTrip(r)
	must(t, err)
	b, err := io.ReadAll(resp.Body)
	must(t, err)
	_ = resp.Body.Close() // it was read
	return resp, string(b)
}

func request(t *testing.T, method, addr, body string, head ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, addr, strings.NewReader(body))
	must(t, err)
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(head); i += 2 {
		r.Header.Set(head[i], head[i+1])
	}
	return r
}

// post answers the form.
func post(t *testing.T, base, token string, head ...string) (*http.Response, string) {
	t.Helper()
	return visit(t, request(t, http.MethodPost, base+"/signin", url.Values{"token": {token}}.Encode(), head...))
}

func guardedBy(t *testing.T, now func() time.Time, tokens ...string) *httptest.Server {
	t.Helper()
	opt := Options{Paths: []string{t.TempDir()}, Now: now}
	for _, s := range tokens {
		opt.Tokens = append(opt.Tokens, server.Token{Role: server.RoleAdmin, Secret: s})
	}
	return serve(t, opt)
}

// A browser shows a token in a form and gets a cookie that is not the token, is for these pages alone, and ends.
func TestAFormTakesATokenForACookieThatEnds(t *testing.T) {
	now := time.Now()
	s := guardedBy(t, func() time.Time { return now }, aToken)
	resp, text := visit(t, request(t, http.MethodGet, s.URL+"/", "", "Accept", "text/html"))
	if resp.StatusCode != http.StatusUnauthorized ||
		!strings.Contains(text, `<form id="signin" method="post" action="signin">`) || !resp.Close {
		t.Fatalf("%d, closed %v: %s", resp.StatusCode, resp.Close, text)
	}
	for _, wrong := range []string{"", "wrong", otherToken, "<script>alert(1)</script>"} {
		resp, text := post(t, s.URL, wrong, "Accept", "text/html")
		if resp.StatusCode != http.StatusUnauthorized || len(resp.Cookies()) > 0 ||
			!strings.Contains(text, "This is no token") || strings.Contains(text, "alert(") {
			t.Errorf("%q: %d, %s", wrong, resp.StatusCode, text)
		}
	}
	resp, text = post(t, s.URL, " "+aToken+"\n")
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "./" || len(resp.Cookies()) != 1 ||
		strings.Contains(text, aToken) {
		t.Fatalf("%d: %v %s", resp.StatusCode, resp.Header, text)
	}
	c := resp.Cookies()[0]
	if strings.Contains(c.Raw, aToken) || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" ||
		c.MaxAge != int(signedFor.Seconds()) {
		t.Errorf("%s", c.Raw)
	}
	look := func(cookie string) int {
		resp, _ := visit(t, request(t, http.MethodGet, s.URL+"/api/list", "", "Cookie", cookie))
		return resp.StatusCode
	}
	at, proof, _ := strings.Cut(c.Value, ".")
	for cookie, want := range map[string]int{
		c.Name + "=" + c.Value:                   200,
		c.Name + "=" + aToken:                    401,
		c.Name + "=9" + at + "." + proof:         401,
		c.Name + "=" + at + ".":                  401,
		c.Name + "=.":                            401,
		c.Name + "=x; " + c.Name + "=" + c.Value: 200, // another server of this machine has set one of this name
		"other=" + c.Value:                       401,
	} {
		if got := look(cookie); got != want {
			t.Errorf("%s: %d, want %d", cookie, got, want)
		}
	}
	now = now.Add(signedFor - time.Minute)
	if got := look(c.Name + "=" + c.Value); got != 200 {
		t.Errorf("before its end: %d", got)
	}
	now = now.Add(2 * time.Minute)
	if got := look(c.Name + "=" + c.Value); got != 401 {
		t.Errorf("after its end: %d", got)
	}
}

// Two servers that a browser knows by the same host have cookies of their own: at other ports, and at the same address.
func TestServersBesideEachOtherHaveCookiesOfTheirOwn(t *testing.T) {
	names := map[string]bool{}
	for _, c := range []struct{ host, token string }{{"h:1", aToken}, {"h:2", aToken}, {"h:1", otherToken}, {"h", aToken},
		{"h", otherToken}} {
		s := New(Options{Tokens: []server.Token{{Role: server.RoleRead, Secret: c.token}}})
		name := s.cookieName(&http.Request{Host: c.host})
		if names[name] || strings.Contains(name, c.token) {
			t.Errorf("%v: %s is taken", c, name)
		}
		names[name] = true
	}
}

// An address with a token works once: a browser loses it and has the cookie, and a program is answered.
func TestAnAddressLosesItsToken(t *testing.T) {
	s := guardedBy(t, nil, aToken)
	resp, _ := visit(t, request(t, http.MethodGet, s.URL+"/?token="+aToken, "", "Sec-Fetch-Site", "none"))
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "./" || len(resp.Cookies()) != 1 {
		t.Fatalf("%d, %v", resp.StatusCode, resp.Header)
	}
	c := resp.Cookies()[0]
	for _, token := range []string{aToken, "another"} { // again, and with a wrong token: the cookie counts
		if resp,
			_ := visit(t, request(t, http.MethodGet, s.URL+"/?token="+token, "", "Cookie",
			c.Name+"="+c.Value)); resp.StatusCode != http.StatusSeeOther {
			t.Errorf("%s with the cookie: %d", token, resp.StatusCode)
		}
	}
	// A link of another site: the browser would not send the cookie after a redirect.
	resp, text := visit(t,
		request(t, http.MethodGet, s.URL+"/?token="+aToken, "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"))
	if resp.StatusCode != http.StatusOK || len(resp.Cookies()) != 1 || !strings.Contains(text, `content="0;url=./"`) ||
		strings.Contains(text, aToken) || resp.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("%d, %v: %s", resp.StatusCode, resp.Header, text)
	}
	resp, text = visit(t,
		request(t, http.MethodGet, s.URL+"/", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"))
	if resp.StatusCode != http.StatusOK || len(resp.Cookies()) != 0 || !strings.Contains(text, `content="0;url=./"`) {
		t.Errorf("a link without a token: %d, %s", resp.StatusCode, text)
	}
	for _, path := range []string{"/api/list?token=" + aToken, "/metrics?token=" + aToken} {
		if resp, _ := visit(t, request(t, http.MethodGet, s.URL+path, "")); resp.StatusCode != http.StatusOK ||
			len(resp.Cookies()) != 0 {
			t.Errorf("%s: %d with %v", path, resp.StatusCode, resp.Cookies())
		}
	}
}

// Pages of other sites send no form here, and a form that never ends is not read.
func TestTheFormIsOfThisServer(t *testing.T) {
	s := guardedBy(t, nil, aToken)
	for _, head := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"},
		{"Origin", "https://evil.example"}, {"Origin", "%"}} {
		if resp, _ := post(t, s.URL, aToken, head...); resp.StatusCode != http.StatusForbidden || len(resp.Cookies()) > 0 {
			t.Errorf("%v: %d", head, resp.StatusCode)
		}
	}
	for _, head := range [][]string{{"Sec-Fetch-Site", "same-origin", "Origin", s.URL}, {"Origin", "null"}} {
		if resp, _ := post(t, s.URL, aToken, head...); resp.StatusCode != http.StatusSeeOther {
			t.Errorf("%v: %d", head, resp.StatusCode)
		}
	}
	if resp, _ := post(t, s.URL, strings.Repeat("x", mostSignIn)); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a long form: %d", resp.StatusCode)
	}
	if resp, _ := visit(t, request(t, http.MethodGet, s.URL+"/signin", "")); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("the form's address: %d", resp.StatusCode)
	}
	c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	must(t, err)
	defer c.Close()
	_, err = io.WriteString(c,
		"POST /signin HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 99\r\n\r\ntoken=")
	must(t, err)
	_ = c.SetReadDeadline(time.Now().Add(soon))
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Errorf("a slow form: %v", err)
	}
	open := serve(t, Options{Paths: []string{t.TempDir()}})
	if resp, _ := post(t, open.URL, aToken); resp.StatusCode != http.StatusNotFound &&
		resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("without tokens: %d", resp.StatusCode)
	}
}
