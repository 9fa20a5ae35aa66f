package ranks

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// handshake is how long the two sides of a new connection have to know each other.
const handshake = 10 * time.Second

// Join waits for all ranks and connects them with each other. A rank that does not fit is refused, with one sentence on both
// sides, and the others go on waiting for one that does.
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
	j := &joining{cancel: fail, Group: newGroup(cfg), host: host, port: port, came: make(chan *call), here: make(map[int]*call), changed: make(chan struct{}, 1), known: make(chan struct{})}
	if err := j.join(ctx); err != nil {
		j.abandon()
		return nil, err
	}
	j.watch()
	return j.Group, nil
}

// errPatience ends a rendezvous that takes too long.
var errPatience = errors.New("the others have not come")

// joining is a rendezvous under way.
type joining struct {
	*Group
	host, port string
	listener   net.Listener

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
	// Names of machines often mean another address on the machine itself, so only a loopback address restricts where to listen.
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
	j.listener = l
	if j.rank == 0 {
		j.addr = net.JoinHostPort(j.host, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
		j.door = l
	} else {
		j.addr = j.cfg.Rendezvous
	}
	go j.accept()
	return nil
}

// accept meets everybody who comes.
func (j *joining) accept() {
	for {
		conn, err := j.listener.Accept()
		if err != nil {
			return // closed
		}
		go j.meet(conn)
	}
}

func (j *joining) meet(conn net.Conn) {
	if j.cfg.Server != nil {
		conn = tls.Server(conn, j.cfg.Server)
	}
	c, err := meet(conn, j.cfg.Token)
	if err != nil {
		if errors.Is(err, errToken) {
			_ = c.answer(answer{Refused: "its token is another one"}) // it sees from the answer that the tokens differ
			j.cfg.Say("refused   %v: %v", conn.RemoteAddr(), err)
		} else if j.cfg.Server != nil && j.rank == 0 {
			j.cfg.Say("refused   %v: %v", conn.RemoteAddr(), err) // most likely a certificate
		}
		_ = conn.Close()
		return
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

// register notes a rank at rank 0, or returns why it does not fit.
func (j *joining) register(c *call) (why string) {
	h := &c.said
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.rank != 0:
		return fmt.Sprintf("this is rank %d, want rank 0", j.rank)
	case h.World != j.world:
		return fmt.Sprintf("it counts %d ranks, want the %d of rank 0", h.World, j.world)
	case h.Rank < 0 || h.Rank >= j.world:
		return fmt.Sprintf("there is no rank %d of %d", h.Rank, j.world)
	case h.Arch != j.cfg.architecture():
		return fmt.Sprintf("it is built for %s, want %s as rank 0: other processors round differently", h.Arch, j.cfg.architecture())
	case h.Build != j.cfg.Build:
		return fmt.Sprintf("it is another build (%.12s), want that of rank 0 (%.12s)", h.Build, j.cfg.Build)
	case h.Rank == 0:
		return "rank 0 is there already: this one"
	case j.here[h.Rank] != nil:
		return fmt.Sprintf("rank %d is there already, at %v", h.Rank, j.here[h.Rank].RemoteAddr())
	case j.begun:
		return "all ranks are there and have begun"
	}
	j.here[h.Rank] = c
	return ""
}

// stay tells the rendezvous of a rank that has registered, and forgets it if it goes before all are there.
func (j *joining) stay(c *call) {
	j.wake()
	var a answer
	if err := c.hearBack(&a); err != nil {
		a.Refused = "its connection has ended"
		j.forget(c)
	}
	c.ready <- a.Refused
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.begun && a.Refused != "" {
		j.cancel(fmt.Errorf("rank %d of %d cannot begin: %s", c.said.Rank, j.world, a.Refused))
	}
	j.wake()
}

func (j *joining) forget(c *call) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.begun && j.here[c.said.Rank] == c {
		delete(j.here, c.said.Rank)
	}
}

func (j *joining) wake() {
	select {
	case j.changed <- struct{}{}:
	default:
	}
}

// expected returns why a data or control connection does not fit.
func (j *joining) expected(c *call) string {
	t := time.NewTimer(handshake)
	defer t.Stop()
	select {
	case <-j.known: // others may hear of the group before this rank does
	case <-t.C:
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if h := &c.said; h.Session == "" || h.Session != j.session || h.Rank <= j.rank || h.Rank >= j.world || h.Purpose != toData && h.Purpose != toControl {
		return "it is of another group"
	}
	return ""
}

// host0 is the rendezvous at rank 0.
func (j *joining) host0(ctx context.Context) error {
	if j.cfg.Listening != nil {
		if err := j.cfg.Listening(j.addr); err != nil {
			return err
		}
	}
	defer func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.begun = true
		for _, c := range j.here {
			_ = c.Close() // everything was said
		}
	}()
	for !j.complete() {
		select {
		case <-ctx.Done():
			err := j.missing(ctx)
			j.refuseAll(err.Error())
			return err
		case <-j.changed:
		}
	}
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it cannot fail
	peers := make([]string, j.world)
	j.mu.Lock()
	j.session = hex.EncodeToString(b)
	for k, c := range j.here {
		ip, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		if at := net.ParseIP(ip); at == nil || at.IsLoopback() {
			ip = "" // on this machine: others know it by the address of the rendezvous
		}
		peers[k] = net.JoinHostPort(ip, strconv.Itoa(c.said.Port))
	}
	j.peers = peers
	close(j.known)
	calls := make([]*call, j.world)
	for k, c := range j.here {
		calls[k] = c
	}
	j.mu.Unlock()
	for k, c := range calls {
		if c == nil {
			continue
		}
		if err := c.answer(answer{Session: j.session, Peers: peers}); err != nil {
			err = fmt.Errorf("rank %d of %d is lost: %w", k, j.world, err)
			j.refuseAll(err.Error())
			return err
		}
	}
	if err := j.mesh(ctx); err != nil {
		j.refuseAll(err.Error())
		return err
	}
	for k, c := range calls {
		if c == nil {
			continue
		}
		why := ""
		select {
		case why = <-c.ready:
		case <-ctx.Done():
			why = "it has not connected to all others"
		}
		if why != "" {
			err := fmt.Errorf("rank %d of %d cannot begin: %s", k, j.world, why)
			j.refuseAll(err.Error())
			return err
		}
	}
	for k, c := range calls {
		if c == nil {
			continue
		}
		if err := c.answer(answer{Session: j.session}); err != nil {
			return fmt.Errorf("rank %d of %d is lost: %w", k, j.world, err)
		}
	}
	return nil
}

func (j *joining) complete() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.begun = len(j.here) == j.world-1
	return j.begun
}

// missing returns who has not come.
func (j *joining) missing(ctx context.Context) error {
	if !errors.Is(context.Cause(ctx), errPatience) {
		return context.Cause(ctx)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	var there, not []string
	for k := range j.world {
		if k == 0 || j.here[k] != nil {
			there = append(there, strconv.Itoa(k))
		} else {
			not = append(not, strconv.Itoa(k))
		}
	}
	what := "rank " + not[0] + " of " + strconv.Itoa(j.world) + " has"
	if n := len(not); n > 1 {
		what = "ranks " + strings.Join(not[:n-1], ", ") + " and " + not[n-1] + " of " + strconv.Itoa(j.world) + " have"
	}
	return fmt.Errorf("%s not come within %s (there: %s)", what, span(j.cfg.Patience), strings.Join(there, ", "))
}

// span formats a time without the zeros of time.Duration.
func span(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// refuseAll tells all that have registered that there will be no group.
func (j *joining) refuseAll(why string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.here {
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_ = c.answer(answer{Refused: why}) // it may have gone
	}
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
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), errPatience):
		return a, fmt.Errorf("the ranks of the group have not all come within %s", span(j.cfg.Patience))
	case ctx.Err() != nil:
		return a, context.Cause(ctx)
	case err != nil:
		return a, fmt.Errorf("rank 0 at %s has gone before all ranks were there: %w", j.addr, err)
	case a.Refused != "":
		return a, errors.New(a.Refused)
	}
	return a, nil
}

// mesh connects this rank with all others: it calls those below and waits for those above.
func (j *joining) mesh(ctx context.Context) error {
	for p := range j.rank {
		addr := j.addr
		if p > 0 {
			host, port, err := net.SplitHostPort(j.peers[p])
			if err != nil {
				return err
			}
			if host == "" {
				host = j.host
			}
			addr = net.JoinHostPort(host, port)
		}
		for _, purpose := range []string{toData, toControl} {
			c, err := j.dial(ctx, addr, purpose, fmt.Sprintf("rank %d", p))
			if err != nil {
				return err
			}
			j.put(p, c)
		}
	}
	for range 2 * (j.world - 1 - j.rank) {
		select {
		case c := <-j.came:
			j.put(c.said.Rank, c)
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errPatience) {
				return fmt.Errorf("rank %d is not reached by all ranks above it within %s", j.rank, span(j.cfg.Patience))
			}
			return context.Cause(ctx)
		}
	}
	for p := range j.world {
		if p != j.rank && (j.links[p] == nil || j.controls[p] == nil) {
			return fmt.Errorf("rank %d has come twice instead of once for data and once for control", p)
		}
	}
	return nil
}

// put keeps a connection to rank p.
func (j *joining) put(p int, c *call) {
	if c.said.Purpose == toData {
		j.links[p] = newLink(p, c.Conn)
	} else {
		j.controls[p] = c.Conn
	}
}

// dial calls a rank until it is there, or refuses.
func (j *joining) dial(ctx context.Context, addr, purpose, who string) (*call, error) {
	j.mu.Lock()
	h := hello{
		Purpose: purpose, Session: j.session, Rank: j.rank, World: j.world, Build: j.cfg.Build, Arch: j.cfg.architecture(),
		Port: j.listener.Addr().(*net.TCPAddr).Port,
	}
	j.mu.Unlock()
	pause := 50 * time.Millisecond
	for {
		c, err := (*call)(nil), error(nil)
		if j.cfg.find != nil && purpose == toJoin {
			if addr, err = j.cfg.find(ctx); err == nil {
				j.found(addr)
			}
		}
		if err == nil {
			c, err = j.once(ctx, addr, h, who)
		}
		if err == nil {
			return c, nil
		}
		var no *refusal
		if errors.As(err, &no) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errPatience) {
				return nil, fmt.Errorf("%s of %d has not come within %s: %w", who, j.world, span(j.cfg.Patience), err)
			}
			return nil, context.Cause(ctx)
		case <-time.After(pause):
			pause = min(2*pause, time.Second)
		}
	}
}

// found notes where rank 0 is.
func (j *joining) found(addr string) {
	j.addr = addr
	j.host, j.port, _ = net.SplitHostPort(addr) // dialling says what is wrong with it
}

func (j *joining) once(ctx context.Context, addr string, h hello, who string) (*call, error) {
	d := net.Dialer{Timeout: handshake}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if j.cfg.Client != nil {
		own := j.cfg.Client.Clone()
		if own.ServerName == "" {
			own.ServerName = j.host
		}
		t := tls.Client(conn, own)
		_ = conn.SetDeadline(time.Now().Add(handshake))
		if err := t.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			var cert *tls.CertificateVerificationError
			var record tls.RecordHeaderError
			if errors.As(err, &cert) || errors.As(err, &record) {
				return nil, &refusal{fmt.Sprintf("%s at %s: %v (--tls-ca says what to trust; all ranks use TLS or none)", who, addr, err)}
			}
			return nil, err
		}
		conn = t
	}
	c, err := greet(conn, j.cfg.Token, h, who)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

// abandon closes what a failed rendezvous has opened.
func (j *joining) abandon() {
	if j.listener != nil {
		_ = j.listener.Close()
	}
	for p := range j.world {
		if l := j.links[p]; l != nil {
			l.close()
			close(l.out)
		}
		if c := j.controls[p]; c != nil {
			_ = c.Close()
		}
	}
}

// Refused reports whether a rendezvous failed by what a rank was refused for, as a wrong token.
func Refused(err error) bool {
	var no *refusal
	return errors.As(err, &no)
}
