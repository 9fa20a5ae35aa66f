package ranks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"clustergym/internal/fault"
)

// NATS is a rendezvous that gives out ranks: processes that are all started alike take the lowest rank that is free.
type NATS struct {
	URL string // of a server with JetStream
	Job string // name of the group on it
}

// bucket holds a key for every rank of every job, JOB.RANK. Keys go after a time in which their owner does not renew
// them.
const bucket = "clustergym-ranks"

// claim is the value of a key.
type claim struct {
	Owner string
	Addr  string // of rank 0, once it listens
}

var jobName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// JoinNATS is Join with the rank and the address of rank 0 from a NATS: cfg.Rank and cfg.Rendezvous do not count. If
// the URL names no user, cfg.Token is presented to the NATS too.
func JoinNATS(ctx context.Context, cfg Config, n NATS) (*Group, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if !jobName.MatchString(n.Job) {
		return nil, refusef("job: got %q, want a name of letters, digits, - and _", n.Job)
	}
	waiting, cancel := context.WithTimeout(ctx, cfg.Patience)
	defer cancel()
	c := &claims{job: n.Job, owner: fmt.Sprintf("%x", newNonce()[:8]), timeout: cfg.Timeout, stop: make(chan struct{})}
	at, err := c.open(waiting, n.URL, cfg.Token)
	if err != nil {
		return nil, err
	}
	g, err := c.join(ctx, waiting, cfg, at)
	if err != nil {
		c.close()
		return nil, err
	}
	g.left = c.close
	return g, nil
}

// claims is a process's claim to a rank.
type claims struct {
	job, owner string
	timeout    time.Duration
	conn       *nats.Conn
	kv         jetstream.KeyValue

	rank int
	mu   sync.Mutex
	addr string
	once sync.Once
	stop chan struct{}
}

// open connects, and returns this machine's address as the NATS's machine sees it.
func (c *claims) open(ctx context.Context, address, token string) (own string, err error) {
	opt := []nats.Option{nats.Name("clustergym ranks"), nats.MaxReconnects(-1)}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "", refusef("NATS: got %q, want nats://HOST:PORT or tls://HOST:PORT", address)
	}
	if u.User == nil && token != "" {
		opt = append(opt, nats.Token(token))
	}
	if c.conn, err = nats.Connect(address, opt...); err != nil {
		return "", fmt.Errorf("NATS at %s: %w", u.Host, err)
	}
	js, err := jetstream.New(c.conn)
	if err == nil {
		c.kv, err = js.CreateOrUpdateKeyValue(ctx,
			jetstream.KeyValueConfig{Bucket: bucket, TTL: c.timeout, Storage: jetstream.MemoryStorage})
	}
	if err != nil {
		c.conn.Close()
		return "", fmt.Errorf("NATS at %s: %w (it needs JetStream)", u.Host, err)
	}
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), "4222")
	}
	udp, err := net.Dial("udp", host) // sends nothing
	if err != nil {
		c.conn.Close()
		return "", err
	}
	defer func() { _ = udp.Close() }()
	own, _, err = net.SplitHostPort(udp.LocalAddr().String())
	return own, err
}

func (c *claims) join(ctx, waiting context.Context, cfg Config, own string) (*Group, error) {
	if cfg.Token == "" && !Loopback(own) && cfg.World > 1 {
		return nil, refusef("%s can be reached from other machines, and nothing is asked of ranks; want %s FILE, "+
			"the same at all ranks",
			own, fault.Key("token-file"))
	}
	if err := c.take(waiting, cfg.World); err != nil {
		return nil, err
	}
	go c.renew()
	cfg.Rank, cfg.Rendezvous = c.rank, net.JoinHostPort(own, "0")
	if c.rank == 0 {
		cfg.Listening = func(addr string) error {
			c.mu.Lock()
			c.addr = addr
			c.mu.Unlock()
			return c.put()
		}
	} else {
		cfg.find = c.find
	}
	return Join(ctx, cfg)
}

func (c *claims) key(rank int) string { return fmt.Sprintf("%s.%d", c.job, rank) }

// take takes the lowest rank that is free. Create is refused to all but the first.
func (c *claims) take(ctx context.Context, world int) error {
	value, err := json.Marshal(claim{Owner: c.owner})
	if err != nil {
		return err
	}
	for {
		for k := range world {
			_, err := c.kv.Create(ctx, c.key(k), value)
			if err == nil {
				c.rank = k
				return nil
			}
			if !errors.Is(err, jetstream.ErrKeyExists) {
				return fmt.Errorf("NATS: %w", err)
			}
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fault.Errorf("all %d ranks of %s are taken; give another group another %s", world, c.job, fault.Key("job"))
			}
			return ctx.Err()
		case <-time.After(min(c.timeout/4, time.Second)): // those of processes that have died become free
		}
	}
}

// put renews the claim.
func (c *claims) put() error {
	c.mu.Lock()
	value, err := json.Marshal(claim{c.owner, c.addr})
	c.mu.Unlock()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	_, err = c.kv.Put(ctx, c.key(c.rank), value)
	return err
}

// renew keeps the claim until the group ends. A NATS that is away for a while does not end the training.
func (c *claims) renew() {
	t := time.NewTicker(c.timeout / 4)
	defer t.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-t.C:
			_ = c.put() // the next may succeed
		}
	}
}

// find returns where rank 0 listens.
func (c *claims) find(ctx context.Context) (string, error) {
	e, err := c.kv.Get(ctx, c.key(0))
	if err != nil {
		return "", fmt.Errorf("nobody is rank 0 of %s: %w", c.job, err)
	}
	var v claim
	if err := json.Unmarshal(e.Value(), &v); err != nil || v.Addr == "" {
		return "", errors.New("rank 0 does not listen yet")
	}
	return v.Addr, nil
}

// close gives the rank back.
func (c *claims) close() {
	c.once.Do(func() {
		close(c.stop)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if e, err := c.kv.Get(ctx, c.key(c.rank)); err == nil && strings.Contains(string(e.Value()), c.owner) {
			_ = c.kv.Purge(ctx, c.key(c.rank), jetstream.LastRevision(e.Revision())) // or it goes by itself
		}
		c.conn.Close()
	})
}
