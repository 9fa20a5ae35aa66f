package ranks

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"clustergym/internal/door"
	"clustergym/internal/shortage"
)

// handshake is how long the two sides of a new connection have to know each other.
const handshake = 10 * time.Second

// Join waits for all ranks and connects them with each other. A rank that does not fit is refused, with one sentence on
// both sides, and the others go on waiting for one that does.
func Join(ctx context.Context, cfg Config) (*Group, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Say == nil {
		cfg.Say = func(string, ...any) {}
	}
	host, port, err := net.SplitHostPort(cfg.Rendezvous)
	if err != nil {
		return nil, fmt.Errorf("rendezvous: got %q, want HOST:PORT", cfg.Rendezvous)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.Patience, errPatience)
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	j := &joining{cancel: fail, Group: newGroup(cfg), host: host, port: port, came: make(chan *call),
		here: make(map[int]*call), changed: make(chan struct{}, 1), known: make(chan struct{})}
	if err := j.join(ctx); err != nil {
		j.abandon()
		return nil, err
	}
	j.watch()
	return j.Group, nil
}

// errPatience ends a rendezvous that takes too long.
var errPatience = errors.New("the others have not come")

// ended returns why a rendezvous has ended: a sentence if it took too long.
func (*joining) ended(ctx context.Context, late string, args ...any) error {
	if errors.Is(context.Cause(ctx), errPatience) {
		return fmt.Errorf(late, args...)
	}
	return context.Cause(ctx)
}

// joining is a rendezvous under way.
type joining struct {
	*Group
	host, port string
	listener   net.Listener
	places     *door.Door   // of connections that have not said who they are
	strangers  atomic.Int64 // that were refused

	came chan *call // data and control connections of ranks above the own

	mu      sync.Mutex
	here    map[int]*call // at rank 0: ranks that have registered
	begun   bool          // at rank 0: the table is out
	changed chan struct{} // at rank 0: here has
	session string
	peers   []string
	known   chan struct{}           // closed when session and peers are
	cancel  context.CancelCauseFunc // ends the rendezvous
}

func (j *joining) join(ctx context.Context) error {
	if err := j.open(ctx); err != nil {
		return err
	}
	if j.rank == 0 {
		return j.host0(ctx)
	}
	defer func() { _ = j.listener.Close() }() // nobody else comes
	return j.visit(ctx)
}

// open opens the door. Only rank 0's address is known beforehand.
func (j *joining) open(ctx context.Context) error {
	// Names of machines often mean another address on the machine itself, so only a loopback address restricts where to
	// listen.
	bind := ""
	if ip := net.ParseIP(j.host); j.host == "localhost" || ip != nil && ip.IsLoopback() {
		bind = j.host
	}
	port := "0"
	if j.rank == 0 {
		port = j.port
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(bind, port))
	if err != nil {
		return fmt.Errorf("rank %d cannot listen: %w", j.rank, err)
	}
	// All ranks may come at the same moment.
	j.places = door.New(door.Config{Places: max(door.Places(), min(3*j.world, shortage.MayOpen()/4))})
	j.listener = j.places.Listen(l)
	if j.rank == 0 {
		j.addr = net.JoinHostPort(j.host, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
		j.door = j.listener
	} else {
		j.addr = j.cfg.Rendezvous
	}
	go j.accept()
	return nil
}

// accept meets everybody who comes. Strangers that say nothing have a few places, where the oldest makes room: they
// keep no rank out, and take no descriptors that the others need.
func (j *joining) accept() {
	defer j.places.Close()
	for {
		conn, err := j.listener.Accept()
		if err != nil {
			return // closed
		}
		place := j.places.Enter(conn)
		go func() {
			defer place.Vacate()
			j.meet(conn, place)
		}()
	}
}

func (j *joining) meet(conn net.Conn, place *door.Place) {
	if j.cfg.Server != nil {
		conn = tls.Server(conn, j.cfg.Server)
	}
	c, err := meet(conn, j.cfg.Token)
	if err != nil {
		if errors.Is(err, errToken) {
			_ = c.answer(answer{Refused: "its token is another one"}) // it sees from the answer that the tokens differ
			j.refused(conn, err)
		} else if j.cfg.Server != nil && j.rank == 0 {
			j.refused(conn, err) // most likely a certificate
		}
		_ = conn.Close()
		return
	}
	if j.cfg.Token != "" {
		place.Vouch()
	}
	why := ""
	if c.said.Purpose == toJoin {
		why = j.register(c)
	} else {
		why = j.expected(c)
	}
	if why != "" {
		_ = c.answer(answer{Refused: why})
		j.cfg.Say("refused   rank %d at %v: %s", c.said.Rank, conn.RemoteAddr(), why)
		_ = conn.Close()
		return
	}
	place.Settle()
	if c.answer(answer{}) != nil || conn.SetDeadline(time.Time{}) != nil {
		_ = conn.Close()
		j.forget(c)
		return
	}
	if c.said.Purpose == toJoin {
		j.stay(c)
		return
	}
	j.came <- c
}

// mostRefused is how many refusals of strangers are reported.
const mostRefused = 20

// refused reports a stranger that was refused, unless there were many.
func (j *joining) refused(conn net.Conn, err error) {
	switch n := j.strangers.Add(1); {
	case n < mostRefused:
		j.cfg.Say("refused   %v: %v", conn.RemoteAddr(), err)
	case n == mostRefused:
		j.cfg.Say("refused   %v: %v; more like it are not reported", conn.RemoteAddr(), err)
	}
}

// expected returns why a data or control connection does not fit.
func (j *joining) expected(c *call) string {
	select {
	case <-j.known: // others may hear of the group before this rank does
	case <-time.After(handshake):
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if h := &c.said; h.Session == "" || h.Session != j.session || h.Rank <= j.rank || h.Rank >= j.world ||
		h.Purpose != toData && h.Purpose != toControl {
		return "it is of another group"
	}
	return ""
}

// visit is the rendezvous at the other ranks.
func (j *joining) visit(ctx context.Context) error {
	c, err := j.dial(ctx, j.addr, toJoin, "rank 0")
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })
	defer stop()
	a, err := j.hear(ctx, c)
	if err != nil {
		return err
	}
	j.mu.Lock()
	j.session, j.peers = a.Session, a.Peers
	close(j.known)
	j.mu.Unlock()
	if len(a.Peers) != j.world {
		return fmt.Errorf("rank 0 at %s names %d ranks, want %d", j.addr, len(a.Peers), j.world)
	}
	begin := make(chan error, 1)
	go func() {
		_, err := j.hear(ctx, c)
		if err != nil {
			j.cancel(err)
		}
		begin <- err
	}()
	if err := j.mesh(ctx); err != nil {
		_ = c.sayBack(answer{Refused: err.Error()}) // rank 0 tells the others
		return err
	}
	if err := c.sayBack(answer{}); err != nil {
		return fmt.Errorf("rank 0 at %s has gone before all ranks were there: %w", j.addr, err)
	}
	return <-begin
}

// hear reads the next answer of rank 0.
func (j *joining) hear(ctx context.Context, c *call) (answer, error) {
	a, err := c.hear()
	switch {
	case ctx.Err() != nil:
		return a, j.ended(ctx, "the ranks of the group have not all come within %s", span(j.cfg.Patience))
	case err != nil:
		return a, fmt.Errorf("rank 0 at %s has gone before all ranks were there: %w", j.addr, err)
	case a.Refused != "":
		return a, errors.New(a.Refused)
	}
	return a, nil
}

// Refused reports whether a rendezvous failed by what a rank was refused for, as a wrong token.
func Refused(err error) bool {
	var no *refusal
	return errors.As(err, &no)
}
