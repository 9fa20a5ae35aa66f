package ranks

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

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
		return fmt.Sprintf("it is built for %s, want %s as rank 0: other processors round differently", h.Arch,
			j.cfg.architecture())
	case h.Build != j.cfg.Build:
		return fmt.Sprintf("it is another build (%s), want that of rank 0 (%s)", h.Build, j.cfg.Build)
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
	j.mu.Lock()
	c.welcome = true
	j.mu.Unlock()
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

// host0 is the rendezvous at rank 0. If it fails, all ranks that have registered are told why.
func (j *joining) host0(ctx context.Context) (err error) {
	if j.cfg.Listening != nil {
		if err := j.cfg.Listening(j.addr); err != nil {
			return err
		}
	}
	defer func() {
		if err != nil {
			j.refuseAll(err.Error())
		}
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
			return j.missing(ctx)
		case <-j.changed:
		}
	}
	calls := j.assign()
	tell := func(a answer) error {
		for _, c := range calls {
			if err := c.answer(a); err != nil {
				return fmt.Errorf("rank %d of %d is lost: %w", c.said.Rank, j.world, err)
			}
		}
		return nil
	}
	if err := tell(answer{Session: j.session, Peers: j.peers}); err != nil {
		return err
	}
	if err := j.mesh(ctx); err != nil {
		return err
	}
	for _, c := range calls {
		why := ""
		select {
		case why = <-c.ready:
		case <-ctx.Done():
			why = "it has not connected to all others"
		}
		if why != "" {
			return fmt.Errorf("rank %d of %d cannot begin: %s", c.said.Rank, j.world, why)
		}
	}
	return tell(answer{Session: j.session})
}

// assign names the session and the addresses of all ranks, and returns the calls of those that have registered, in
// their
// order.
func (j *joining) assign() []*call {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it cannot fail
	j.mu.Lock()
	defer j.mu.Unlock()
	j.session, j.peers = hex.EncodeToString(b), make([]string, j.world)
	for k, c := range j.here {
		ip, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		if at := net.ParseIP(ip); at == nil || at.IsLoopback() {
			ip = "" // on this machine: others know it by the address of the rendezvous
		}
		j.peers[k] = net.JoinHostPort(ip, strconv.Itoa(c.said.Port))
	}
	close(j.known)
	return slices.SortedFunc(maps.Values(j.here), func(a, b *call) int { return a.said.Rank - b.said.Rank })
}

func (j *joining) complete() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.begun = len(j.here) == j.world-1
	for _, c := range j.here {
		j.begun = j.begun && c.welcome
	}
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
