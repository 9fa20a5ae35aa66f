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
)

// How long a server may take. Files are a few megabytes, so none of it limits a slow line.
const (
	connectTime = 15 * time.Second // to a connection, and as long again for its encryption
	headerTime  = 30 * time.Second // from the request to the head of the answer
	stallTime   = 30 * time.Second // between two pieces of a file
	maxHops     = 5                // redirections
)

// newClient makes the client that a Getter uses when it is given none.
func newClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone() // with the user's proxy
	t.DialContext = (&net.Dialer{Timeout: connectTime}).DialContext
	t.TLSHandshakeTimeout = connectTime
	t.ResponseHeaderTimeout = headerTime
	return &http.Client{Transport: t, CheckRedirect: checkRedirect}
}

// isLoopback says whether u is an address of this machine.
func isLoopback(u *url.URL) bool {
	host := u.Hostname()
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// allowed says whether u may be asked: with https, or, where local says so, on this machine.
func allowed(u *url.URL, local bool) error {
	if u.Scheme == "https" || u.Scheme == "http" && local && isLoopback(u) {
		return nil
	}
	return &refusedError{fmt.Sprintf("%s://%s is not followed, only https is", u.Scheme, u.Host)}
}

// checkRedirect follows a few redirections, and none that leads from the net to this machine or out of https.
func checkRedirect(r *http.Request, via []*http.Request) error {
	if len(via) > maxHops {
		return &refusedError{fmt.Sprintf("redirected more than %d times", maxHops)}
	}
	return allowed(r.URL, isLoopback(via[0].URL))
}

// refusedError is an address that is not followed.
type refusedError struct{ what string }

func (e *refusedError) Error() string { return e.what }

// passingError is a failure that may pass: the transfer is tried again, after wait if the server named a time.
type passingError struct {
	err  error
	wait time.Duration
}

func (e *passingError) Error() string { return e.err.Error() }
func (e *passingError) Unwrap() error { return e.err }

func passing(format string, args ...any) error {
	return &passingError{err: fmt.Errorf(format, args...)}
}

var errStalled = errors.New("the server sends nothing more")

// transfer asks once for what p lacks of f and adds what comes. It ends with nil when p has all bytes, whatever they
// are, and with a *passingError where another attempt may go further.
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
	r.Header.Set("Accept-Encoding", "identity") // the hash is of the file, not of a packing
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
	defer a.Body.Close() //nolint:errcheck // only read
	if err := begin(a, f, p); err != nil {
		return err
	}
	progress()
	buf := make([]byte, 32<<10)
	for {
		watch.Reset(g.stall)
		n, err := a.Body.Read(buf[:min(int64(len(buf)), f.Size-p.n)]) // what a server adds is not looked at
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

// answerless sorts what a client says who got no answer, or not all of it.
func answerless(ctx context.Context, err error) error {
	if context.Cause(ctx) == errStalled { //nolint:errorlint // it is set as it is
		return passing("%w", errStalled)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the address stands in the sentence around it
	}
	if _, ok := errors.AsType[*refusedError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return err
	}
	if d, ok := errors.AsType[*net.DNSError](err); ok && d.IsNotFound {
		return fmt.Errorf("there is no server %s, or no way to the net from here (a mirror can be named with --mirror)", d.Name)
	}
	return &passingError{err: err}
}

// sizeError says that the server has something of another length.
type sizeError struct{ got, want int64 }

func (e *sizeError) Error() string {
	return fmt.Sprintf("got a file of %d bytes, want %d: this is not the published file", e.got, e.want)
}

// begin reads the head of an answer and makes p ready for its body.
func begin(a *http.Response, f *File, p *part) error {
	switch a.StatusCode {
	case http.StatusOK: // all of it, also from a server that knows no ranges or has another file now
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

// strongTag is the answer's ETag where it can be asked for with If-Range: a weak one cannot (RFC 9110, 13.1.5).
func strongTag(a *http.Response) string {
	if tag := a.Header.Get("ETag"); strings.HasPrefix(tag, `"`) {
		return tag
	}
	return ""
}

// contentRange reads "bytes FROM-TO/TOTAL" (RFC 9110, 14.4); total is -1 for "*".
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

// maxWait bounds what a server may ask for: somebody sits before the terminal.
const maxWait = time.Minute

// retryAfter is how many seconds the server asks to wait, 0 = it does not say.
func retryAfter(a *http.Response) time.Duration {
	s, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if err != nil || s < 0 {
		return 0
	}
	return min(time.Duration(min(s, 3600))*time.Second, maxWait)
}
