package operate_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"clustergym/bridge/client"
	"clustergym/bridge/wire"
	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/internal/raced"
	"clustergym/internal/testseed"
)

var (
	soakFor     = flag.Duration("soak", 4*time.Second, "how long TestSoak lasts")
	soakClients = flag.Int("soak-clients", 26, "how many clients TestSoak has; half of them are hostile")
	soakSeed    = flag.Uint64("soak-seed", testseed.Or(1), "seed of the clients of TestSoak")
)

// A program started by these tests collects its garbage when it is asked to, so that what it keeps can be measured.
func init() {
	if os.Getenv(clitest.AsProgram) == "" {
		return
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	go func() {
		for range c {
			runtime.GC()
			debug.FreeOSMemory()
		}
	}()
}

// siege is a server and the clients that use and misuse it.
type siege struct {
	t       *testing.T
	addr    string
	process *os.Process
	budget  int64
	token   string
	proxy   string // an address that leads to the server, whose connections cut breaks
	cut     func()

	rounds                           int // so far
	played, visits, refused, redials atomic.Int64
	attacks                          []atomic.Int64 // of each kind that have run to their end
	harmed                           atomic.Int64
}

// soakLimit ends what hangs. It is longer than the server's own limits, which are longer than what a slow machine
// needs.
const soakLimit = 5 * time.Minute

const (
	soakToken  = "env-token-of-the-soak-0001"
	soakReader = "read-token-of-the-soak-001"
	soakSecret = "a secret in a file of the server"
)

// TestSoak serves rightful clients while others attack: without a token, with a wrong one, and with a right one. The
// rightful ones must not notice, and after all have gone the server must have what it had before.
//
// Caches and pools fill at some time, and the runtime and package net/http start goroutines when they first need them,
// so that a server may hold more after a round of clients than before without a leak. A leak leaves more after every
// round. So the first round, in which everything happens at least once, does not count, and when a round has left more
// than the one before, another is played: only a server that holds more after each of them leaks.
//
//	go test ./cmd/gymctl -run TestSoak -soak 10m -soak-clients 200 -v
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: it keeps a server busy for several seconds")
	}
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	for _, err := range []error{
		os.Mkdir(root, 0o700),
		os.WriteFile(filepath.Join(dir, "tokens"), []byte("env "+soakToken+"\nread "+soakReader+"\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "secret"), []byte(soakSecret+"\n"), 0o600),
		os.WriteFile(filepath.Join(root, "broken.csv"), []byte(soakSecret+"\n"), 0o600),
		os.Symlink(filepath.Join(dir, "secret"), filepath.Join(root, "link.csv")),
		syscall.Mkfifo(filepath.Join(root, "pipe.csv"), 0o600),
		os.Mkdir(filepath.Join(root, "profiles"), 0o700),
		syscall.Mkfifo(filepath.Join(root, "profiles", "a.csv"), 0o600),
		os.Symlink("/dev/zero", filepath.Join(root, "zero.csv")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if *soakClients < 4 {
		t.Fatalf("-soak-clients is %d, want at least 4: one of each sort", *soakClients)
	}
	s := &siege{t: t, token: soakToken, budget: 512 << 20, attacks: make([]atomic.Int64, len(hostiles))}
	window := 10 * time.Second
	if *soakFor > time.Minute || raced.On {
		window = 30 * time.Second // with hundreds of clients, or slow ones, coming back takes longer
	}
	p, _, addr, wait := started(t, "--token-file", filepath.Join(dir, "tokens"), "--trace-root", root, "--memory",
		fmt.Sprint(s.budget),
		"--resume-window", window.String(), "--hello-timeout", "1m", "--step-timeout", "3m", "--max-sessions", "512",
		"--log-level", "error", "--drain-timeout", "10s")
	s.addr, s.process = addr, p
	t.Cleanup(func() {
		_ = p.Signal(syscall.SIGTERM) // it may have ended
		if code := wait(); code != cli.ExitDone {
			t.Errorf("the server ended with exit code %d", code)
		}
	})
	s.listen()

	s.run(time.Second, 2*len(hostiles), 1)
	last := s.rest()
	t.Logf("before: %v", last)
	for round, d := 1, *soakFor; ; round, d = round+1, min(*soakFor, time.Minute) {
		s.run(d, *soakClients, 4)
		now := s.rest()
		grown := now.beyond(last)
		t.Logf("round %d, %v: %v; peak %d MiB of memory, budget %d MiB; beyond the last round: %q", round, d, now,
			now.peak>>20, s.budget>>20, grown)
		last = now
		if grown == "" {
			break
		}
		if round == soakRounds {
			t.Errorf("each of %d rounds left more than the one before; the last: %s", round, grown)
			break
		}
	}
	var attacks int64
	for i := range s.attacks {
		attacks += s.attacks[i].Load()
	}
	t.Logf("%d episodes played in %d visits and by residents, %d opens refused for lack of memory, %d attacks, %d dials in vain",
		s.played.Load(), s.visits.Load(), s.refused.Load(), attacks, s.redials.Load())
	if n := s.harmed.Load(); n != 0 {
		t.Errorf("%d rightful clients were harmed", n)
	}
	// As docs/reference/wire.md says: half as much again and 64 MiB, besides the program. The race detector takes several
	// times that.
	if most := s.budget*3/2 + 128<<20; last.peak > most && !raced.On {
		t.Errorf("the server took %d MiB, want at most %d", last.peak>>20, most>>20)
	}
}

// soakRounds is how many rounds in a row must each leave more than the one before until that is a leak.
const soakRounds = 5

// resources is what a server at rest holds.
type resources struct {
	goroutines, files int
	heap, peak        int64
}

func (r resources) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %d kB", r.goroutines, r.files, r.heap>>10)
}

// beyond says what r has more of than before, "" for nothing that counts.
func (r resources) beyond(before resources) string {
	var more []string
	for _, x := range []struct {
		name             string
		now, then, slack int64
	}{
		{"goroutines", int64(r.goroutines), int64(before.goroutines), 4},
		{"descriptors", int64(r.files), int64(before.files), 2},
		{"kB of memory", r.heap >> 10, before.heap >> 10, 1 << 10},
	} {
		if x.now > x.then+x.slack {
			more = append(more, fmt.Sprintf("%d %s have become %d", x.then, x.name, x.now))
		}
	}
	return strings.Join(more, ", ")
}

// metrics returns the metrics of the server by name, and the sum of each over its labels.
func (s *siege) metrics() map[string]float64 {
	s.t.Helper()
	var err error
	for begun := time.Now(); time.Since(begun) < soakLimit; time.Sleep(100 * time.Millisecond) {
		var sums map[string]float64
		if sums, err = s.scrape(); err == nil {
			return sums
		}
	}
	s.t.Fatalf("/metrics: %v", err)
	return nil
}

// scrape asks for the metrics once. The server gives a request a few seconds, which a slow machine may exceed.
func (s *siege) scrape() (map[string]float64, error) {
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.addr+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+soakReader)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(resp.Status)
	}
	sums := map[string]float64{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		x, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("%q", lines.Text())
		}
		sums[name] = x
		if family, _, labels := strings.Cut(name, "{"); labels {
			sums[family] += x
		}
	}
	return sums, lines.Err()
}

// rest waits until no session is left, collects the server's garbage and returns what it still holds.
func (s *siege) rest() (r resources) {
	s.t.Helper()
	begun := time.Now()
	for {
		m := s.metrics()
		if m["clustergym_sessions"]+m["clustergym_sessions_parked"]+m["clustergym_handles"]+m["clustergym_envs"]+
			m["clustergym_requests_in_flight"] == 0 {
			break
		}
		if time.Since(begun) > soakLimit {
			s.t.Fatalf("after minutes there are still %v sessions, %v parked, %v handles, %v requests", m["clustergym_sessions"],
				m["clustergym_sessions_parked"], m["clustergym_handles"], m["clustergym_requests_in_flight"])
		}
		time.Sleep(100 * time.Millisecond)
	}
	// Requests that were abandoned, and what was read ahead for clients that have gone, need a moment; so the least of
	// some measurements counts.
	r.goroutines, r.files, r.heap = math.MaxInt, math.MaxInt, math.MaxInt64
	for range 20 {
		if err := s.process.Signal(syscall.SIGUSR1); err != nil {
			s.t.Fatal(err)
		}
		time.Sleep(150 * time.Millisecond)
		m := s.metrics()
		files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.process.Pid))
		if err != nil {
			s.t.Fatal(err)
		}
		r.goroutines = min(r.goroutines, int(m["go_goroutines"]))
		r.files = min(r.files, len(files))
		r.heap = min(r.heap, int64(m["go_memstats_heap_alloc_bytes"]))
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if kb, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(kb), " kB"), 10, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			r.peak = n << 10
		}
	}
	return r
}

// listen starts the proxy whose connections can be cut.
func (s *siege) listen() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	var (
		mu    sync.Mutex
		conns = map[net.Conn]bool{}
		rng   = rand.New(rand.NewPCG(*soakSeed, 77))
	)
	s.proxy = l.Addr().String()
	s.cut = func() {
		mu.Lock()
		defer mu.Unlock()
		for c := range conns {
			if rng.IntN(4) == 0 {
				_ = c.Close() // both copies end
				delete(conns, c)
			}
		}
	}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", s.addr)
			if err != nil {
				_ = in.Close() // the client tries again
				continue
			}
			mu.Lock()
			conns[in] = true
			mu.Unlock()
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() {
				_, _ = io.Copy(in, out)
				_ = in.Close() // nothing more comes
				mu.Lock()
				delete(conns, in)
				mu.Unlock()
			}()
		}
	}()
	s.t.Cleanup(func() { _ = l.Close() })
}

// run lets n clients, half of them hostile, play for d, and on until each sort of them has done something so many
// times: residents and visitors have played episodes and every attack has run to its end. So a slow machine finds the
// same leaks.
func (s *siege) run(d time.Duration, n int, times int64) {
	s.t.Helper()
	s.rounds++
	ctx, stop := context.WithCancel(s.t.Context())
	defer stop()
	enough := s.more(times)
	var wg, ready sync.WaitGroup
	start := make(chan struct{})
	for i := range n / 2 {
		wg.Add(1)
		ready.Add(1)
		go func() {
			defer wg.Done()
			if i%2 == 0 {
				s.resident(ctx, i, ready.Done)
			} else {
				ready.Done()
				<-start
				s.visitor(ctx, i)
			}
		}()
	}
	ready.Wait() // residents are in before the attack begins
	close(start)
	for i := n / 2; i < n; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			// Every round draws other attacks. A cache that never forgets anything then grows in every round.
			rng := rand.New(rand.NewPCG(*soakSeed, uint64(s.rounds)<<32|uint64(i)))
			for k := i; ctx.Err() == nil; k++ {
				hostiles[k%len(hostiles)](ctx, s, rng)
				if ctx.Err() == nil {
					s.attacks[k%len(hostiles)].Add(1)
				}
			}
		}()
	}
	wg.Add(1)
	go func() {
		defer wg.Done()
		for ctx.Err() == nil {
			pause(ctx, 700*time.Millisecond)
			s.cut()
		}
	}()
	for begun := time.Now(); ; pause(ctx, 10*time.Millisecond) {
		took := time.Since(begun)
		missing := enough()
		if took >= d && missing == "" {
			break
		}
		if s.harmed.Load() > 0 {
			break // the clients that were harmed play no more
		}
		if took >= d+soakLimit {
			s.t.Errorf("round %d has taken %v, and yet not enough: %s", s.rounds, took, missing)
			break
		}
	}
	stop()
	wg.Wait()
}

// more returns a function that says what has not yet happened so many times more, "" for nothing.
func (s *siege) more(times int64) func() string {
	counts := func() []int64 {
		visits := s.visits.Load()
		all := []int64{s.played.Load() - visits, visits}
		for i := range s.attacks {
			all = append(all, s.attacks[i].Load())
		}
		return all
	}
	before := counts()
	return func() string {
		for i, x := range counts() {
			switch {
			case x >= before[i]+times:
			case i == 0:
				return "episodes of residents"
			case i == 1:
				return "episodes of visitors"
			default:
				return fmt.Sprintf("attack %d of hostiles", i-2)
			}
		}
		return ""
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// small is an environment that any server has room for.
var small = map[string]any{"window": 16, "warm": 0, "trace": map[string]any{"synth": map[string]any{"jobs": 400}}}

// harm reports what a rightful client should not have seen.
func (s *siege) harm(format string, args ...any) {
	s.harmed.Add(1)
	s.t.Errorf(format, args...)
}

// dial connects a rightful client. The server gives a connection a few seconds to say what it wants, and less if there
// are many, so on a slow machine it may take some attempts.
func (s *siege) dial(addr string) (*client.Client, error) {
	const limit = 2 * time.Minute
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		c, err := client.Dial(context.Background(),
			client.Config{URL: "ws://" + addr, Token: s.token, Timeout: soakLimit, DialTimeout: time.Minute})
		if err == nil || time.Since(begun) > limit {
			return c, err
		}
		s.redials.Add(1)
	}
}

// resident holds one session all the time. Its connection is cut now and then. It plays the same episodes again and
// again, and every one must be what it was before.
func (s *siege) resident(ctx context.Context, i int, in func()) {
	// The session ends after the time of the soak, so calls do not use ctx.
	c, err := s.dial(s.proxy)
	if err != nil {
		in()
		s.harm("resident %d: %v", i, err)
		return
	}
	defer c.Close() //nolint:errcheck // always nil
	e, err := c.Open(context.Background(), jobselect.V1, small)
	in()
	if err != nil {
		s.harm("resident %d: %v", i, err)
		return
	}
	seen := map[uint64]uint64{}
	for k := uint64(0); ctx.Err() == nil; k++ {
		seed := k % 5
		got, err := episode(e, seed)
		if err != nil {
			s.harm("resident %d, episode %d: %v", i, k, err)
			return
		}
		if want, ok := seen[seed]; ok && got != want {
			s.harm("resident %d: seed %d gave another episode than before", i, seed)
			return
		}
		seen[seed] = got
		s.played.Add(1)
	}
}

// episode plays seed's episode and returns a hash of all it showed.
func episode(e *client.Env, seed uint64) (uint64, error) {
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(context.Background(), env.Episode{Seed: seed, Window: -1}, ts); err != nil {
		return 0, err
	}
	rng, h := rand.New(rand.NewPCG(seed, 1)), fnv.New64a()
	for {
		for _, x := range append(ts.Obs, float32(ts.Reward)) {
			_ = binary.Write(h, binary.LittleEndian, x) // a hash takes everything
		}
		if ts.Kind.Last() {
			return h.Sum64(), nil
		}
		var legal []int32
		for a, ok := range ts.Mask {
			if ok {
				legal = append(legal, int32(a))
			}
		}
		if err := e.Step(context.Background(), env.Action{Disc: []int32{legal[rng.IntN(len(legal))]}}, ts); err != nil {
			return 0, err
		}
	}
}

// visitor comes, plays one episode and goes. It may find no room for its environment, but never none for itself.
func (s *siege) visitor(ctx context.Context, i int) {
	for k := 0; ctx.Err() == nil; k++ {
		err := func() error {
			c, err := s.dial(s.addr)
			if err != nil {
				return err
			}
			defer c.Close() //nolint:errcheck // always nil
			e, err := c.Open(context.Background(), jobselect.V1, small)
			if err != nil {
				return err
			}
			_, err = episode(e, uint64(k))
			return err
		}()
		var refused *wire.Error
		switch {
		case err == nil:
			s.visits.Add(1)
			s.played.Add(1)
		case errors.As(err, &refused) && refused.Code == wire.Capacity:
			s.refused.Add(1)
			pause(ctx, 50*time.Millisecond)
		default:
			s.harm("visitor %d, visit %d: %v", i, k, err)
			return
		}
	}
}

// hostiles are attacks. Each runs once and returns, early if ctx ends.
var hostiles = []func(ctx context.Context, s *siege, rng *rand.Rand){
	silent, dribbler, stranger, forger, babbler, shouter, hog, deaf, counterfeiter, hijacker, snooper, visitorOfPages,
	leaver,
}

// raw opens a TCP connection that ends with ctx.
func (s *siege) raw(ctx context.Context) (net.Conn, func()) {
	c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return nil, nil
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	return c, func() { stop(); _ = c.Close() }
}

// silent connects and says nothing.
func silent(ctx context.Context, s *siege, rng *rand.Rand) {
	for range 1 + rng.IntN(40) {
		if c, end := s.raw(ctx); c != nil {
			defer end()
		}
	}
	pause(ctx, time.Duration(rng.IntN(1000))*time.Millisecond)
}

// dribbler sends an upgrade byte by byte.
func dribbler(ctx context.Context, s *siege, rng *rand.Rand) {
	c, end := s.raw(ctx)
	if c == nil {
		return
	}
	defer end()
	for _, b := range []byte("GET /v1/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nX-Long: " + strings.Repeat("x", rng.IntN(200))) {
		if _, err := c.Write([]byte{b}); err != nil {
			return
		}
		pause(ctx, 5*time.Millisecond)
	}
}

// ws is an upgraded connection.
type ws struct {
	*websocket.Conn
	id    int64
	limit time.Duration // of writing a message
	end   func()
}

func (s *siege) upgrade(ctx context.Context, token string) *ws {
	head := http.Header{}
	if token != "" {
		head.Set("Authorization", "Bearer "+token)
	}
	d := websocket.Dialer{Subprotocols: []string{wire.SubMsgpack}, HandshakeTimeout: 10 * time.Second}
	c, resp, err := d.DialContext(ctx, "ws://"+s.addr+"/v1/ws", head)
	if resp != nil {
		_ = resp.Body.Close() // nothing in it matters
	}
	if err != nil {
		return nil
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	return &ws{Conn: c, limit: soakLimit, end: func() { stop(); _ = c.Close() }}
}

// post sends a request.
func (c *ws) post(op string, pairs ...any) error {
	c.id++
	m := wire.Map{{Key: "op", Value: op}, {Key: "id", Value: c.id}}
	for i := 0; i < len(pairs); i += 2 {
		m = append(m, wire.Pair{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	w := wire.NewWriter(wire.Ext)
	w.Value(m)
	_ = c.SetWriteDeadline(time.Now().Add(c.limit)) // a broken connection says so when it is written to
	return c.WriteMessage(websocket.BinaryMessage, w.Bytes())
}

// ask sends a request and returns the reply; ok is false after an error of the connection.
func (c *ws) ask(op string, pairs ...any) (reply wire.Map, ok bool) {
	if c.post(op, pairs...) != nil {
		return nil, false
	}
	_ = c.SetReadDeadline(time.Now().Add(soakLimit)) // as above
	_, b, err := c.ReadMessage()
	if err != nil {
		return nil, false
	}
	reply, e := wire.Decode(b, wire.Ext, wire.DefaultLimits())
	return reply, e == nil
}

// insider is a session of a client with a token.
func (s *siege) insider(ctx context.Context) *ws {
	c := s.upgrade(ctx, s.token)
	if c == nil {
		return nil
	}
	if _, ok := c.ask(wire.OpHello, "proto", []any{1, 1}, "enc", []any{"ext"}, "feat",
		[]any{"async", "resume", "snapshot", "render"},
		"client", wire.Map{{Key: "name", Value: strings.Repeat("\x1b[31mname\n", 50)}}); !ok {
		c.end()
		return nil
	}
	return c
}

func (c *ws) open(id string, n int, kwargs wire.Map) (h int64, code wire.Code) {
	reply, ok := c.ask(wire.OpOpen, "env", id, "n", n, "kwargs", kwargs)
	if !ok {
		return 0, wire.Internal
	}
	if op, _ := reply.Str("op", ""); op == wire.OpError {
		return 0, wire.ErrorOf(reply).Code
	}
	h, _ = reply.Int("h", 0, 0, math.MaxUint32)
	return h, ""
}

// stranger upgrades without a token and says nothing.
func stranger(ctx context.Context, s *siege, rng *rand.Rand) {
	for range 1 + rng.IntN(20) {
		if c := s.upgrade(ctx, ""); c != nil {
			defer c.end()
		}
	}
	pause(ctx, time.Duration(rng.IntN(1500))*time.Millisecond)
}

// forger tries tokens.
func forger(ctx context.Context, s *siege, rng *rand.Rand) {
	for range 20 {
		if c := s.upgrade(ctx, fmt.Sprintf("guess-%016x", rng.Uint64())); c != nil {
			s.harm("a wrong token was accepted on the upgrade")
			c.end()
		}
	}
	if c := s.upgrade(ctx, ""); c != nil {
		defer c.end()
		if _, ok := c.ask(wire.OpHello, "proto", []any{1, 1}, "auth", soakToken+"x"); ok {
			s.harm("a wrong token was accepted in hello")
		}
	}
}

// babbler has a session and sends frames that cannot be read.
func babbler(ctx context.Context, s *siege, rng *rand.Rand) {
	c := s.insider(ctx)
	if c == nil {
		return
	}
	defer c.end()
	good := wire.NewWriter(wire.Ext)
	good.Value(wire.Map{{Key: "op", Value: "step"}, {Key: "id", Value: 9}, {Key: "h", Value: 1},
		{Key: "a", Value: []any{1, 2, 3}}})
	for range 200 {
		b := append([]byte(nil), good.Bytes()...)
		for range 1 + rng.IntN(6) {
			b[rng.IntN(len(b))] = byte(rng.Uint32())
		}
		if rng.IntN(4) == 0 { // a list of four billion entries
			b = []byte{0x81, 0xa2, 'o', 'p', 0xdd, 0xff, 0xff, 0xff, 0xff}
		}
		if c.WriteMessage(websocket.BinaryMessage, b) != nil {
			return
		}
	}
}

// shouter begins with too much.
func shouter(ctx context.Context, s *siege, _ *rand.Rand) {
	c := s.upgrade(ctx, "")
	if c == nil {
		return
	}
	defer c.end()
	_ = c.WriteMessage(websocket.BinaryMessage, make([]byte, 1<<20)) // the server ends it
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, _, _ = c.ReadMessage() // likewise
}

// hog opens and resets the largest environments until there is no room, and leaves without a word.
func hog(ctx context.Context, s *siege, rng *rand.Rand) {
	c := s.insider(ctx)
	if c == nil {
		return
	}
	defer c.end()
	for range 8 {
		id, n, kwargs := "DAGPlace-v1", 1, wire.Map{{Key: "gpus", Value: 10000}}
		if rng.IntN(2) == 0 {
			id, n, kwargs = jobselect.V1, 4096, nil
		}
		h, code := c.open(id, n, kwargs)
		switch code {
		case "":
		case wire.Capacity:
			s.refused.Add(1)
			return
		case wire.Internal:
			if ctx.Err() == nil {
				s.harm("a large open ended the connection")
			}
			return
		default:
			s.harm("a large open was answered with %s", code)
			return
		}
		if _, ok := c.ask(wire.OpReset, "h", h, "seed", 1); !ok {
			return
		}
	}
}

// deaf asks for much and reads nothing.
func deaf(ctx context.Context, s *siege, _ *rand.Rand) {
	c := s.insider(ctx)
	if c == nil {
		return
	}
	defer c.end()
	h, code := c.open(jobselect.V1, 64, wire.Map{{Key: "window", Value: 16}, {Key: "warm", Value: 0}})
	if code != "" {
		return
	}
	c.limit = time.Second // the server stops reading
	for range 400 {
		if c.post(wire.OpReset, "h", h) != nil {
			return
		}
	}
	pause(ctx, 500*time.Millisecond)
}

// counterfeiter changes snapshots.
func counterfeiter(ctx context.Context, s *siege, rng *rand.Rand) {
	c := s.insider(ctx)
	if c == nil {
		return
	}
	defer c.end()
	h, code := c.open(jobselect.V1, 2, wire.Map{{Key: "window", Value: 16}, {Key: "warm", Value: 0}})
	if code != "" {
		return
	}
	if _, ok := c.ask(wire.OpReset, "h", h, "seed", 1); !ok {
		return
	}
	reply, ok := c.ask(wire.OpSnapshot, "h", h)
	if !ok {
		return
	}
	blob, e := reply.Bytes("blob")
	if e != nil || len(blob) == 0 {
		return
	}
	for range 50 {
		b := append([]byte(nil), blob...)
		b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		reply, ok := c.ask(wire.OpRestore, "h", h, "blob", b)
		if !ok {
			return
		}
		if op, _ := reply.Str("op", ""); op != wire.OpError {
			s.harm("a changed snapshot was accepted")
			return
		}
	}
}

// hijacker tries to resume sessions of others.
func hijacker(ctx context.Context, s *siege, rng *rand.Rand) {
	for range 10 {
		c := s.upgrade(ctx, s.token)
		if c == nil {
			return
		}
		reply, ok := c.ask(wire.OpHello, "proto", []any{1, 1}, "enc", []any{"ext"}, "feat", []any{"resume"}, "resume",
			wire.Map{
				{Key: "session", Value: fmt.Sprintf("%06x", rng.IntN(1<<24))}, {Key: "token", Value: strings.Repeat("0", 32)},
				{Key: "last", Value: wire.Map{}},
			})
		if ok {
			s.harm("a session was resumed without its secret: %v", reply)
		}
		c.end()
	}
}

// snooper names files that it must not see, and files that never end.
func snooper(ctx context.Context, s *siege, _ *rand.Rand) {
	c := s.insider(ctx)
	if c == nil {
		return
	}
	defer c.end()
	for _, name := range []string{"broken.csv", "link.csv", "pipe.csv", "zero.csv", "../secret", "/etc/passwd", "profiles",
		".", ""} {
		for _, key := range []string{"file", "profiles"} {
			trace := wire.Map{{Key: key, Value: name}}
			reply, ok := c.ask(wire.OpOpen, "env", "DelayOffer-v1", "kwargs", wire.Map{{Key: "trace", Value: trace}})
			if !ok {
				return
			}
			if op, _ := reply.Str("op", ""); op == wire.OpError && strings.Contains(wire.ErrorOf(reply).Msg, soakSecret) {
				s.harm("trace.%s %q was answered with the contents of a file: %s", key, name, wire.ErrorOf(reply).Msg)
			}
		}
	}
}

// visitorOfPages asks for pages that it may not see.
func visitorOfPages(ctx context.Context, s *siege, rng *rand.Rand) {
	hc := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for _, page := range []struct{ method, path string }{
		{http.MethodGet, "/metrics"}, {http.MethodPost, "/v1/drain"}, {http.MethodGet, "/v1/envs"},
		{http.MethodGet, "/" + strings.Repeat("a", rng.IntN(4000))}, {http.MethodGet, "/v1/ws"},
	} {
		req, err := http.NewRequestWithContext(ctx, page.method, "http://"+s.addr+page.path, nil)
		if err != nil {
			continue
		}
		if rng.IntN(2) == 0 && page.path == "/v1/drain" {
			req.Header.Set("Authorization", "Bearer "+s.token)
		}
		resp, err := hc.Do(req)
		if err != nil {
			continue
		}
		if _, err := io.Copy(io.Discard, resp.Body); err == nil && resp.StatusCode < 300 {
			s.harm("%s %.40s was answered with %s", page.method, page.path, resp.Status)
		}
		_ = resp.Body.Close() // only read
	}
}

// leaver begins something long and goes.
func leaver(ctx context.Context, s *siege, rng *rand.Rand) {
	c := s.insider(ctx)
	if c == nil {
		return
	}
	defer c.end()
	_ = c.post(wire.OpOpen, "env", "DAGPlace-v1", "n", 4, "kwargs", wire.Map{{Key: "gpus", Value: 1000 + rng.IntN(1000)}})
	pause(ctx, time.Duration(rng.IntN(100))*time.Millisecond)
}
