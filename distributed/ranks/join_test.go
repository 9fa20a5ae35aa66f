package ranks

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// A rank that does not fit is refused in one sentence on both sides, and rank 0 goes on waiting for one that does.
func TestRanksThatDoNotFit(t *testing.T) {
	for want, change := range map[string]func(c *Config){
		"it is built for arm64, want amd64 as rank 0: other processors round differently": func(c *Config) { c.arch = "arm64" },
		"it is another build (other), want that of rank 0 (build)":                        func(c *Config) { c.Build = "other" },
		"it counts 3 ranks, want the 2 of rank 0":                                         func(c *Config) { c.World = 3 },
		"its token (token-file) is another one":                                           func(c *Config) { c.Token = "guessed" },
	} {
		var mu sync.Mutex
		var said []string
		_, errs := join(2, func(c *Config) {
			c.arch, c.Patience = "amd64", 500*time.Millisecond
			if c.Rank == 1 {
				change(c)
			}
			if c.Rank == 0 {
				c.Say = func(format string, args ...any) {
					mu.Lock()
					defer mu.Unlock()
					said = append(said, fmt.Sprintf(format, args...))
				}
			}
		})
		if errs[1] == nil || !strings.Contains(errs[1].Error(), want) || !Refused(errs[1]) {
			t.Errorf("rank 1: %v, want %s", errs[1], want)
		}
		if errs[0] == nil || errs[0].Error() != "rank 1 of 2 has not come within 500ms (there: 0)" {
			t.Errorf("rank 0: %v", errs[0])
		}
		mu.Lock()
		if text := strings.Join(said, "\n"); !strings.Contains(text, "refused") ||
			!strings.Contains(text, want) && !strings.Contains(text, "the token (token-file) is another one") {
			t.Errorf("rank 0 says %q, want %s", text, want)
		}
		mu.Unlock()
	}
}

func TestConfigsThatCannotBe(t *testing.T) {
	for want, c := range map[string]Config{
		"world: got 0 ranks, want 1 to 1024":        {},
		"rank: got 2, want a number from 0 to 1":    {World: 2, Rank: 2},
		"rank timeout: got 1ms, want 100ms or more": {World: 2, Timeout: time.Millisecond},
		`rendezvous: got "host", want HOST:PORT`: {World: 2, Timeout: time.Second, Patience: time.Second,
			Rendezvous: "host"},
		"rank 0 cannot listen: listen tcp: address 999999": {World: 2, Timeout: time.Second, Patience: time.Second,
			Rendezvous: "127.0.0.1:999999"},
	} {
		if _, err := Join(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestSpansHaveNoZeros(t *testing.T) {
	for d, want := range map[time.Duration]string{5 * time.Minute: "5m", time.Hour: "1h", 90 * time.Second: "1m30s",
		700 * time.Millisecond: "700ms"} {
		if got := span(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
