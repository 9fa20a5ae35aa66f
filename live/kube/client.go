package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"clustergym/internal/ordinary"
	"clustergym/live"
)

// client speaks with an API server.
type client struct {
	http      *http.Client
	server    string
	token     string
	tokenFile string
	agent     string // what it is called in the server's books
}

// errConflict: the object has changed since it was read. errExpired: a list or watch must begin anew.
var (
	errConflict = errors.New("the object has changed in the meantime")
	errExpired  = errors.New("the server has forgotten this version")
	errMissing  = errors.New("there is no such object")
	// errInvalid: the server understands the request and will not have it as the object stands.
	errInvalid = errors.New("the server does not take this")
)

func newClient(c Config) (*client, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName, InsecureSkipVerify: c.Insecure} //nolint:gosec // asked for
	if c.CA != nil {
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(c.CA) {
			return nil, fmt.Errorf("the certificate authority of %s holds no certificate, want PEM", c.Server)
		}
	}
	if c.Cert != nil {
		pair, err := tls.X509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("the client certificate for %s: %w", c.Server, err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	// A watch may be silent for a minute; HTTP/2 asks after a connection that is silent for longer than this. A server
	// that takes a connection and answers nothing is none.
	tr := &http.Transport{
		TLSClientConfig: t, ForceAttemptHTTP2: true, ResponseHeaderTimeout: 30 * time.Second,
		IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 4,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
	}
	if c.Proxy != "" {
		u, err := url.Parse(c.Proxy)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("proxy %q, want an address as http://10.0.0.1:3128", c.Proxy)
		}
		tr.Proxy = http.ProxyURL(u)
	}
	return &client{server: strings.TrimRight(c.Server, "/"), token: c.Token, tokenFile: c.TokenFile, agent: "clustergym",
		http: &http.Client{
			Transport: tr,
			// A token must not follow to another server.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}}, nil
}

const mergePatch = "application/merge-patch+json"

// open sends a request and returns the answer if it is a good one. body is sent as JSON, as a merge patch with PATCH.
func (c *client) open(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
	var text io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		text = bytes.NewReader(b)
	}
	at := c.server + path
	if len(query) > 0 {
		at += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, at, text)
	if err != nil {
		return nil, fmt.Errorf("%w: %s %s: %v", live.ErrUnsupported, method, at, err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.agent)
	switch {
	case method == http.MethodPatch:
		req.Header.Set("Content-Type", mergePatch)
	case body != nil:
		req.Header.Set("Content-Type", "application/json")
	}
	token := c.token
	if c.tokenFile != "" {
		b, err := ordinary.Read(c.tokenFile, ordinary.Settings)
		if err != nil {
			return nil, fmt.Errorf("%w: the token cannot be read: %v", live.ErrDenied, err)
		}
		token = strings.TrimSpace(string(b))
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, failure(ctx, method, path, err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close() //nolint:errcheck // it says what is wrong, no more
	return nil, refusal(method, path, resp)
}

// failure says why there is no answer.
func failure(ctx context.Context, method, path string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s %s: %w", method, path, context.Cause(ctx))
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var cert *tls.CertificateVerificationError
	if errors.As(err, &cert) {
		return fmt.Errorf(
			"%w: the server's certificate is not one that the certificate authority of this configuration vouches for: %v",
			live.ErrUnsupported, cert.Err)
	}
	return fmt.Errorf("%w: %s %s: %v", live.ErrUnreachable, method, path, err)
}

// status is what the server says of an error.
type status struct {
	Message string `json:"message"`
	Reason  string `json:"reason"`
}

func refusal(method, path string, resp *http.Response) error {
	var s status
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if json.Unmarshal(text, &s) != nil || s.Message == "" {
		s.Message = strings.TrimSpace(string(text[:min(len(text), 200)]))
	}
	return statusError(method, path, resp.StatusCode, s.Message)
}

// statusError makes an error of what the server has answered.
func statusError(method, path string, code int, message string) error {
	said := fmt.Sprintf("%s %s: %d", method, path, code)
	if message != "" {
		said += " " + message
	}
	switch {
	case code == http.StatusUnauthorized:
		return fmt.Errorf("%w: the credentials have expired or are not known here (%s)", live.ErrDenied, said)
	case code == http.StatusForbidden:
		return fmt.Errorf("%w: %s", live.ErrDenied, said)
	case code == http.StatusNotFound:
		return fmt.Errorf("%w: %s", errMissing, said)
	case code == http.StatusConflict:
		return fmt.Errorf("%w: %s", errConflict, said)
	case code == http.StatusGone:
		return fmt.Errorf("%w: %s", errExpired, said)
	// of this object, as from a webhook that fails
	case code == http.StatusInternalServerError && method != http.MethodGet:
		return errors.New(said)
	case code == http.StatusTooManyRequests || code >= 500:
		return fmt.Errorf("%w: %s", live.ErrUnreachable, said)
	case code == http.StatusUnprocessableEntity:
		return fmt.Errorf("%w: %w: %s", live.ErrUnsupported, errInvalid, said)
	}
	return fmt.Errorf("%w: %s", live.ErrUnsupported, said)
}

// call sends a request and decodes the answer into out, if that is not nil. It returns the server's clock.
func (c *client) call(ctx context.Context, method, path string, query url.Values, body, out any) (time.Time, error) {
	resp, err := c.open(ctx, method, path, query, body)
	if err != nil {
		return time.Time{}, err
	}
	defer resp.Body.Close() //nolint:errcheck // it has been read
	at, _ := http.ParseTime(resp.Header.Get("Date"))
	if out == nil {
		return at, nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		if errors.As(err, &syntax) || errors.As(err, &kind) {
			return at, fmt.Errorf("%w: %s %s: the answer is not the JSON of a version known here: %v", live.ErrUnsupported,
				method, path, err)
		}
		return at, failure(ctx, method, path, err)
	}
	return at, nil
}
