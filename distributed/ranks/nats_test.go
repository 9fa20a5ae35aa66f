package ranks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// broker starts a NATS in this process.
func broker(t *testing.T) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("NATS does not start")
	}
	return s.ClientURL()
}

// Processes that are started alike become ranks 0 to 3, each once. When they have ended, others can.
func TestNATSGivesOutRanks(t *testing.T) {
	url := broker(t)
	for range 2 {
		const world = 4
		groups, errs := make([]*Group, world), make([]error, world)
		var all sync.WaitGroup
		for i := range world {
			all.Go(func() {
				c := DefaultConfig()
				c.World, c.Timeout = world, 5*time.Second
				groups[i], errs[i] = JoinNATS(t.Context(), c, NATS{URL: url, Job: "mine"})
			})
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		seen := map[int]bool{}
		for _, g := range groups {
			seen[g.Rank()] = true
		}
		if len(seen) != world {
			t.Errorf("ranks %v", seen)
		}
		each(t, groups, func(g *Group) error {
			y := []float64{1}
			if err := g.Sum(g.rank, nil, y); err != nil || y[0] != world {
				return fmt.Errorf("sum %v: %w", y, err)
			}
			return nil
		})
		if seen[0] { // a fifth is told
			c := DefaultConfig()
			c.World, c.Patience = world, 300*time.Millisecond
			if _, err := JoinNATS(t.Context(), c, NATS{URL: url, Job: "mine"}); err == nil ||
				!strings.Contains(err.Error(), "all 4 ranks of mine are taken") {
				t.Errorf("a fifth: %v", err)
			}
		}
		for _, g := range groups {
			all.Go(func() { g.Close(nil) })
		}
		all.Wait()
	}
}

func TestNATSRefusesWhatMakesNoSense(t *testing.T) {
	c := DefaultConfig()
	c.World = 2
	for want, n := range map[string]NATS{
		`job: got "a.b"`: {URL: "nats://127.0.0.1:1", Job: "a.b"},
		`NATS: got "x"`:  {URL: "x", Job: "a"},
		"NATS at 127.0.0.1:1: nats: no servers available": {URL: "nats://127.0.0.1:1", Job: "a"},
	} {
		if _, err := JoinNATS(context.Background(), c, n); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
