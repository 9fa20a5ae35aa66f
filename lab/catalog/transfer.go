package catalog

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"clustergym/internal/fault"
)

// Limits on how long a server may take. Files are a few megabytes, and no limit applies to a whole file, so that a slow
// connection is not cut off.
const (
	connectTime = 15 * time.Second // until a connection exists, and again until it is encrypted
	headerTime  = 30 * time.Second // from the request to the header of the response
	stallTime   = 30 * time.Second // between two pieces of a file
	maxHops     = 5                // redirections
)

// newClient returns the HTTP client of a Getter.
func newClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone() // with the user's proxy
	t.DialContext = (&net.Dialer{Timeout: connectTime}).DialContext
	t.TLSHandshakeTimeout = connectTime
	t.ResponseHeaderTimeout = headerTime
	return &http.Client{Transport: t, CheckRedirect: checkRedirect}
}

// isLoopback reports whether u is an address of this machine.
func isLoopback(u *url.URL) bool {
	host := u.Hostname()
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// allowed returns a *refusedError unless u is an https address, or an http address of this machine if local is true.
func allowed(u *url.URL, local bool) error {
	if u.Scheme == "https" || u.Scheme == "http" && local && isLoopback(u) {
		return nil
	}
	return &refusedError{fmt.Sprintf("%s://%s is not followed, only https is", u.Scheme, u.Host)}
}

// checkRedirect allows a few redirections to https addresses. If the first request went to this machine, it also allows
// http addresses of this machine.
func checkRedirect(r *http.Request, via []*http.Request) error {
	if len(via) > maxHops {
		return &refusedError{fmt.Sprintf("redirected more than %d times", maxHops)}
	}
	return allowed(r.URL, isLoopback(via[0].URL))
}

// refusedError is the error for an address that must not be requested.
type refusedError struct{ what string }

func (e *refusedError) Error() string { return e.what }

// passingError is a failure that may be temporary. The transfer is tried again, not before wait if the server set a
// time.
type passingError struct {
	err  error
	wait time.Duration
}

func (e *passingError) Error() string { return e.err.Error() }
func (e *passingError) Unwrap() error { return e.err }

// passing returns a *passingError.
func passing(format string, args ...any) error {
	return &passingError{err: fmt.Errorf(format, args...)}
}

var errStalled = errors.New("the server sends nothing more")

// transfer requests the bytes of f that p lacks once, and adds those that arrive. It returns nil if p has all bytes,
// right or wrong, and a *passingError if another attempt may get further.
func (g *Getter) transfer(ctx context.Context, address string, f *File, p *part, progress func()) error {
	if p.n > f.Size {
		if err := p.restart(""); err != nil {
			return err
		}
	}
	if p.n == f.Size {
		return nil
	}
	asked, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r, err := http.NewRequestWithContext(asked, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	if err := allowed(r.URL, isLoopback(r.URL)); err != nil {
		return err
	}
	r.Header.Set("User-Agent", "clustergym")
	r.Header.Set("Accept-Encoding", "identity") // the hash is that of the uncompressed file
	if p.n > 0 {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", p.n))
		if p.tag != "" {
			r.Header.Set("If-Range", p.tag)
		}
	}
	watch := time.AfterFunc(g.stall+headerTime, func() { cancel(errStalled) })
	defer watch.Stop()
	a, err := g.client.Do(r)
	if err != nil {
		return answerless(asked, err)
	}
	defer a.Body.Close() //nolint:errcheck // reading is finished
	if err := begin(a, f, p); err != nil {
		return err
	}
	progress()
	buf := make([]byte, 32<<10)
	for {
		watch.Reset(g.stall)
		n, err := a.Body.Read(buf[:min(int64(len(buf)), f.Size-p.n)]) // bytes beyond the size are ignored
		if werr := p.add(buf[:n]); werr != nil {
			return werr
		}
		progress()
		switch {
		case p.n == f.Size:
			return nil
		case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF):
			return passing("the connection ended after %s of %s", FormatSize(p.n), FormatSize(f.Size))
		case err != nil:
			return answerless(asked, err)
		}
	}
}

// answerless classifies the error of a request without a complete response.
func answerless(ctx context.Context, err error) error {
	if context.Cause(ctx) == errStalled { //nolint:errorlint // the cause is set unwrapped
		return passing("%w", errStalled)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the caller's message has the address
	}
	if _, ok := errors.AsType[*refusedError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return err
	}
	if d, ok := errors.AsType[*net.DNSError](err); ok && d.IsNotFound {
		return fault.Errorf("there is no server %s, or no way to the net from here (a mirror can be named with %s)", d.Name,
			fault.Key("mirror"))
	}
	return &passingError{err: err}
}

// sizeError is the error for a server whose file has another size.
type sizeError struct{ got, want int64 }

func (e *sizeError) Error() string {
	return fmt.Sprintf("got a file of %d bytes, want %d: this is not the published file", e.got, e.want)
}

// begin checks the header of a response and prepares p for its body.
func begin(a *http.Response, f *File, p *part) error {
	switch a.StatusCode {
	case http.StatusOK: // the whole file; also from a server without ranges, or whose file has changed
		if a.ContentLength >= 0 && a.ContentLength != f.Size {
			return &sizeError{a.ContentLength, f.Size}
		}
		return p.restart(strongTag(a))
	case http.StatusPartialContent:
		from, total, ok := contentRange(a.Header.Get("Content-Range"))
		if ok && total >= 0 && total != f.Size {
			return &sizeError{total, f.Size}
		}
		if !ok || from != p.n {
			if err := p.restart(""); err != nil {
				return err
			}
			return passing("the server sent other bytes than it was asked for")
		}
		p.old = true
		return nil
	case http.StatusRequestedRangeNotSatisfiable:
		if err := p.restart(""); err != nil {
			return err
		}
		return passing("the server does not know the bytes that are missing")
	case http.StatusNotFound, http.StatusGone:
		return fmt.Errorf("the publisher does not have it (%s)", a.Status)
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return &passingError{fmt.Errorf("the server answers %s", a.Status), retryAfter(a)}
	}
	if a.StatusCode >= 500 {
		return &passingError{fmt.Errorf("the server answers %s", a.Status), retryAfter(a)}
	}
	return fmt.Errorf("the server answers %s", a.Status)
}

// strongTag returns the response's ETag if it can be used with If-Range, which a weak one cannot (RFC 9110, 13.1.5).
func strongTag(a *http.Response) string {
	if tag := a.Header.Get("ETag"); strings.HasPrefix(tag, `"`) {
		return tag
	}
	return ""
}

// contentRange parses "bytes FROM-TO/TOTAL" (RFC 9110, 14.4). total is -1 for "*".
func contentRange(s string) (from, total int64, ok bool) {
	s, ok = strings.CutPrefix(s, "bytes ")
	span, all, cut := strings.Cut(s, "/")
	first, _, dash := strings.Cut(span, "-")
	if !ok || !cut || !dash {
		return 0, 0, false
	}
	from, err := strconv.ParseInt(first, 10, 64)
	if err != nil || from < 0 {
		return 0, 0, false
	}
	if all == "*" {
		return from, -1, true
	}
	total, err = strconv.ParseInt(all, 10, 64)
	return from, total, err == nil && total >= 0
}

// maxWait limits the wait that a server can ask for, because a user may be waiting at the terminal.
const maxWait = time.Minute

// retryAfter returns how long the server asks to wait, 0 if it does not say.
func retryAfter(a *http.Response) time.Duration {
	s, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if err != nil || s < 0 {
		return 0
	}
	return min(time.Duration(min(s, 3600))*time.Second, maxWait)
}
