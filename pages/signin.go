package pages

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed" // the page
	"encoding/hex"
	"html"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"clustergym/bridge/server"
	"clustergym/internal/door"
)

// A browser shows a token once, in the form of a page that this file serves, and gets a cookie for it. The token itself
// stands in no address, which people copy and programs write to logs.

// signedFor is how long a browser that has shown a token may look. Then it shows the token again.
const signedFor = 12 * time.Hour

const (
	leastSignIn = 5 * time.Second // for the whole request of the form
	mostSignIn  = 8 << 10         // bytes of the form
)

//go:embed assets/signin.html
var signInPage string

//go:embed assets/signin.js
var signInScript string

// bouncePage goes to the same page without the token, on this site's own behalf: after a link of another site, a
// browser sends no cookie of kind Strict before that.
const bouncePage = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=./"><title>ClusterGym</title></head>
<body><a href="./">To the pages</a></body></html>
`

// cookieName is that of the cookie which a browser gets for a token. It has the port, since browsers do not tell the
// ports of a machine apart, and a digest of the tokens, since one address can lead to several servers in turn, or by a
// proxy: servers on one host have cookies of their own.
func (s *Server) cookieName(r *http.Request) string {
	h := sha256.New()
	for _, t := range s.opt.Tokens {
		if looks(t) {
			sum := sha256.Sum256([]byte("clustergym ui cookie\x00" + t.Secret))
			_, _ = h.Write(sum[:]) // never fails
		}
	}
	name := "clustergym_ui_" + hex.EncodeToString(h.Sum(nil)[:4])
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		name += "_" + port
	}
	return name
}

// cookieOf is a cookie's value: when it ends, and a proof that its holder has shown token before. It is not the token:
// browsers send it to every server of this machine, also those of other people, and a token can open more than pages.
func cookieOf(token string, ends time.Time) string {
	at := strconv.FormatInt(ends.Unix(), 10)
	m := hmac.New(sha256.New, []byte(token))
	_, _ = m.Write([]byte("clustergym ui\x00" + at)) // never fails
	return at + "." + hex.EncodeToString(m.Sum(nil))
}

// looks reports whether the holder of a token may look.
func looks(t server.Token) bool { return t.Role == server.RoleRead || t.Role == server.RoleAdmin }

// same compares without telling by its time how much is equal.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// known reports whether given is a token of role read or admin.
func (s *Server) known(given string) bool {
	ok := false
	for _, t := range s.opt.Tokens {
		if same(given, t.Secret) && looks(t) {
			ok = true
		}
	}
	return ok
}

// bears reports whether a request shows such a token in its header.
func (s *Server) bears(r *http.Request) bool {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && s.known(strings.TrimSpace(given))
}

// signed reports whether a request has a cookie of this server that has not ended.
func (s *Server) signed(r *http.Request) bool {
	ok := false
	for _, c := range r.CookiesNamed(s.cookieName(r)) {
		at, _, _ := strings.Cut(c.Value, ".")
		unix, err := strconv.ParseInt(at, 10, 64)
		if err != nil || !s.opt.Now().Before(time.Unix(unix, 0)) {
			continue
		}
		for _, t := range s.opt.Tokens {
			if same(c.Value, cookieOf(t.Secret, time.Unix(unix, 0))) && looks(t) {
				ok = true
			}
		}
	}
	return ok
}

// sign gives a browser the cookie for a token.
func (s *Server) sign(w http.ResponseWriter, r *http.Request, token string) {
	http.SetCookie(w, &http.Cookie{
		Name: s.cookieName(r), Value: cookieOf(token,
			s.opt.Now().Add(signedFor)), Path: "/", MaxAge: int(signedFor / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
}

// admit lets a request in that shows a token or a cookie, or answers it.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) bool {
	front := r.URL.Path == "/"
	switch r.URL.Path {
	case "/healthz", "/app.css", "/signin.js": // the same for everybody
		return true
	case "/signin":
		s.signIn(w, r)
		return false
	}
	if s.bears(r) {
		return true
	}
	if given := r.URL.Query().Get("token"); given != "" && s.known(given) {
		if !front {
			return true
		}
		// An address with a token is for programs. A browser that has one loses it.
		s.sign(w, r, given)
		s.forward(w, r)
		return false
	}
	if s.signed(r) {
		if front && r.URL.Query().Has("token") {
			s.forward(w, r)
			return false
		}
		return true
	}
	if front && foreign(r) {
		s.forward(w, r)
		return false
	}
	s.refuse(w, r, front, "")
	return false
}

// foreign reports whether a page of another site has led a browser here.
func foreign(r *http.Request) bool { return r.Header.Get("Sec-Fetch-Site") == "cross-site" }

// forward sends a browser to the pages, without what the address has.
func (s *Server) forward(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if foreign(r) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(bouncePage)) // a reader that is gone is no fault
		return
	}
	w.Header().Set("Location", "./") // below whatever a proxy puts before it
	w.WriteHeader(http.StatusSeeOther)
}

// refuse answers a request without a token: a browser gets the form, a program a sentence.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, form bool, why string) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Connection", "close") // a stranger keeps none
	if !form || !strings.Contains(r.Header.Get("Accept"), "text/html") {
		h.Set("WWW-Authenticate", "Bearer")
		http.Error(w,
			"this wants a token of role read or admin: send Authorization: Bearer TOKEN; a browser shows a form at the "+
				"address of the pages", http.StatusUnauthorized)
		return
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusUnauthorized)
	// a reader that is gone is no fault
	_, _ = w.Write([]byte(strings.Replace(signInPage, "{{why}}", html.EscapeString(why), 1)))
}

// signIn is POST /signin, with the field token: the form's answer.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		s.forward(w, r)
		return
	}
	if !ownForm(r) {
		http.Error(w, "this form is of another site", http.StatusForbidden)
		return
	}
	// A connection that cannot have a deadline is served without one.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(leastSignIn))
	r.Body = http.MaxBytesReader(w, r.Body, mostSignIn)
	if err := r.ParseForm(); err != nil {
		s.refuse(w, r, true, "The form could not be read; try it again.")
		return
	}
	token := strings.TrimSpace(r.PostForm.Get("token"))
	if !s.known(token) {
		s.refuse(w, r, true, "This is no token of role read or admin in this server's file.")
		return
	}
	door.PlaceOf(r).Vouch()
	s.sign(w, r, token)
	s.forward(w, r)
}

// ownForm reports whether a form was sent by a page of this server, as far as the browser says.
func ownForm(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" || origin == "null" { // without a referrer some browsers say null
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host
}
