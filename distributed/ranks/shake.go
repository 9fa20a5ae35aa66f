package ranks

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"clustergym/internal/fault"
)

// greeting begins every connection, from the side that listens. A nonce follows.
const greeting = "clustergym ranks 1\n"

// nonceBytes is the size of a nonce: both sides draw one, so that nothing that was recorded can be said again.
const nonceBytes = 32

// Purposes of a connection.
const (
	toJoin    = "join" // to rank 0, until all are there
	toData    = "data"
	toControl = "control"
)

// hello is what the side that dials says.
type hello struct {
	Purpose string
	Session string // of data and control
	Rank    int
	World   int
	Build   string
	Arch    string
	Port    int // at which a rank that joins listens
	Nonce   []byte
}

// answer is what the side that listens says.
type answer struct {
	Refused string   // why, "" = welcome
	Session string   // when all are there
	Peers   []string // likewise, addresses by rank; without a host: that of the rendezvous
}

// refusal is an answer that another attempt would not change.
type refusal struct{ error }

// Unwrap leads to the error whose text names keys.
func (e *refusal) Unwrap() error { return e.error }

func refusef(format string, args ...any) error { return &refusal{fault.Errorf(format, args...)} }

// mac authenticates a text by the token. what keeps texts of one place from being used in another.
func mac(token, what string, nonces ...[]byte) []byte {
	h := hmac.New(sha256.New, []byte(token))
	h.Write([]byte(what))
	for _, n := range nonces {
		h.Write(n)
	}
	return h.Sum(nil)
}

// writeFrame sends a JSON value with its authentication.
func writeFrame(w io.Writer, v any, token, what string, nonces ...[]byte) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(body))) //nolint:gosec // short
	b = append(b, body...)
	b = append(b, mac(token, what, append(nonces, body)...)...)
	_, err = w.Write(b)
	return err
}

// errToken is returned by readFrame for a value that was authenticated with another token.
var errToken = fault.Errorf("the token (%s) is another one", fault.Key("token-file"))

// readFrame reads a JSON value into v. If its authentication is wrong, v is filled in all the same, and the error is
// errToken: v may be used to say who it was.
func readFrame(r io.Reader, v any, token, what string, nonces ...[]byte) error {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(size[:])
	if n > 1<<20 {
		return fmt.Errorf("a message of %d bytes", n)
	}
	b := make([]byte, int(n)+sha256.Size)
	if _, err := io.ReadFull(r, b); err != nil {
		return err
	}
	body, sum := b[:n], b[n:]
	if err := json.Unmarshal(body, v); err != nil {
		return err
	}
	if !hmac.Equal(sum, mac(token, what, append(nonces, body)...)) {
		return errToken
	}
	return nil
}

func newNonce() []byte {
	b := make([]byte, nonceBytes)
	_, _ = rand.Read(b) // it cannot fail
	return b
}

// call is a connection whose other side is known.
type call struct {
	net.Conn
	token        string
	theirs, ours []byte      // nonces
	said         hello       // of the side that dialled
	welcome      bool        // at rank 0: the rank has been told that it is registered
	ready        chan string // at rank 0: why the rank cannot begin, "" = it can
}

// greet begins a connection on the side that dials, and returns it once it is welcome.
func greet(conn net.Conn, token string, h hello, who string) (*call, error) {
	_ = conn.SetDeadline(time.Now().Add(handshake / 2)) // before the other side gives up
	c := &call{Conn: conn, token: token, ours: newNonce(), said: h}
	b := make([]byte, len(greeting)+nonceBytes)
	if _, err := io.ReadFull(conn, b); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, refusef("%s at %v does not greet within %v: all ranks use TLS or none", who, conn.RemoteAddr(),
				handshake/2)
		}
		return nil, fmt.Errorf("%s at %v does not greet: %w", who, conn.RemoteAddr(), err)
	}
	if !bytes.HasPrefix(b, []byte(greeting)) {
		return nil, refusef("%v is not the address of %s: something else listens there", conn.RemoteAddr(), who)
	}
	_ = conn.SetDeadline(time.Now().Add(handshake))
	c.theirs = b[len(greeting):]
	h.Nonce = c.ours
	if err := writeFrame(conn, h, token, "hello", c.theirs); err != nil {
		return nil, err
	}
	a, err := c.hear()
	if errors.Is(err, errToken) {
		return nil, refusef("%s at %v refused this rank: its token (%s) is another one", who, conn.RemoteAddr(),
			fault.Key("token-file"))
	}
	if err != nil {
		return nil, fmt.Errorf("%s at %v does not answer: %w", who, conn.RemoteAddr(), err)
	}
	if a.Refused != "" {
		return nil, refusef("%s at %v refused this rank: %s", who, conn.RemoteAddr(), a.Refused)
	}
	return c, conn.SetDeadline(time.Time{})
}

// hear reads an answer.
func (c *call) hear() (a answer, err error) {
	err = readFrame(c, &a, c.token, "answer", c.ours, c.theirs)
	return a, err
}

// meet begins a connection on the side that listens. The caller answers. The error errToken comes with a call whose
// words are not to be trusted.
func meet(conn net.Conn, token string) (*call, error) {
	_ = conn.SetDeadline(time.Now().Add(handshake))
	c := &call{Conn: conn, token: token, ours: newNonce(), ready: make(chan string, 1)}
	if _, err := conn.Write(append([]byte(greeting), c.ours...)); err != nil {
		return nil, err
	}
	err := readFrame(conn, &c.said, token, "hello", c.ours)
	c.theirs = c.said.Nonce
	return c, err
}

// answer answers a call that was met.
func (c *call) answer(a answer) error {
	return writeFrame(c, a, c.token, "answer", c.theirs, c.ours)
}

// sayBack is what the side that dialled says once it has connected to all others, and hearBack reads it.
func (c *call) sayBack(a answer) error {
	return writeFrame(c, a, c.token, "back", c.theirs, c.ours)
}

func (c *call) hearBack(a *answer) error {
	return readFrame(c, a, c.token, "back", c.ours, c.theirs)
}
