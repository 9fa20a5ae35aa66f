package ranks

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"clustergym/internal/fault"
)

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
			return j.ended(ctx, "rank %d is not reached by all ranks above it within %s", j.rank, span(j.cfg.Patience))
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
			return nil, j.ended(ctx, "%s of %d has not come within %s: %w", who, j.world, span(j.cfg.Patience), err)
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
				return nil, refusef("%s at %s: %w (%s says what to trust; all ranks use TLS or none)", who, addr, err,
					fault.Key("tls-ca"))
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
