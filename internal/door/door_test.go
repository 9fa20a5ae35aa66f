package door

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"clustergym/internal/shortage"
)

// patience ends what hangs.
const patience = 30 * time.Second

// doors returns a door with so many places, and the address of a server behind it. Its only page shows a token if asked
// for /known, and waits for the end of the request at /stream.
func doors(t *testing.T, places int) (*Door, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := New(Config{Places: places})
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
		PlaceOf(r).Vouch()
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(t.Context(), &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}, l) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return d, l.Addr().String()
}

func dial(t *testing.T, addr, request string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	if request != "" {
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// ended reports whether the other side has closed c.
func ended(c net.Conn) bool {
	_, err := io.Copy(io.Discard, c)
	return err == nil || errors.Is(err, syscall.ECONNRESET)
}

// However many connections come, silent or idle after a request, there are never more than places, and a new client is
// served.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]string{"silent": "", "half a request": "GET / HTTP/1.1\r\nHost: x",
		"idle": "GET / HTTP/1.1\r\nHost: x\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, addr := doors(t, 8)
			first := dial(t, addr, request)
			for range 40 {
				dial(t, addr, request)
				if n := d.Waiting(); n > 8+1 {
					t.Fatalf("%d connections, want at most 8 and a new one", n)
				}
			}
			resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + addr)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%v, %v", resp, err)
			}
			_ = resp.Body.Close()
			if !ended(first) {
				t.Error("the oldest is still there")
			}
		})
	}
}

// Streams of clients that have shown something do not compete with strangers, and among themselves the oldest makes
// room.
func TestStreamsCompeteWithStreamsAlone(t *testing.T) {
	t.Parallel()
	d, addr := doors(t, 8)
	const stream = "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"
	first := dial(t, addr, stream)
	if _, err := first.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	for range 40 {
		dial(t, addr, "")
	}
	eventually(t, "strangers have made room", func() bool { return d.Waiting() <= 9 })
	_ = first.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := io.Copy(io.Discard, first); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the stream has ended: %v", err)
	}
	_ = first.SetReadDeadline(time.Now().Add(patience))
	for range 9 {
		if _, err := dial(t, addr, stream).Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if !ended(first) {
		t.Error("the oldest stream is still there")
	}
}

// short is a listener whose system has no descriptors some of the time.
type short struct {
	net.Listener
	failures atomic.Int32 // still to come
	err      error
}

func (s *short) Accept() (net.Conn, error) {
	if s.failures.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", s.err)}
	}
	return s.Listener.Accept()
}

// What concerns one connection or a shortage ends no listener; what concerns the listener does.
func TestAcceptOutlastsAShortage(t *testing.T) {
	t.Parallel()
	for _, reason := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED,
		syscall.ECONNRESET, syscall.EPROTO} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		refused := 0
		d := New(Config{Refused: func(error) { refused++ }})
		s := &short{Listener: l, err: reason}
		s.failures.Store(7)
		behind := d.Listen(s)
		dial(t, l.Addr().String(), "")
		c, err := behind.Accept()
		if err != nil || refused != 7 {
			t.Fatalf("%v: %v after %d refusals, want 7", reason, err, refused)
		}
		_ = c.Close()
		_ = l.Close()
		if _, err := behind.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after its end: %v", err)
		}
		d.Close()
	}
}

// Without descriptors the oldest stranger makes room, however young it is, and not the last one.
func TestAShortageShedsStrangers(t *testing.T) {
	t.Parallel()
	d, addr := doors(t, 8)
	if d.conns.shed(1) {
		t.Error("there was nobody")
	}
	c := dial(t, addr, "")
	eventually(t, "it is in the table", func() bool { return d.Waiting() == 1 })
	if d.conns.shed(2) || !d.conns.shed(1) {
		t.Error("nobody was shed, or the last one too early")
	}
	if !ended(c) {
		t.Error("it is still there")
	}
	eventually(t, "nobody is left", func() bool { return d.Waiting() == 0 })
}

// Files of the process get the reserve, and then the places of strangers.
func TestADoorGivesDescriptorsBack(t *testing.T) {
	d, addr := doors(t, 8)
	c := dial(t, addr, "")
	eventually(t, "it is in the table", func() bool { return d.Waiting() == 1 })
	n := 0
	if err := shortage.Files(func() error {
		if n++; n == 2 && d.reserve.Give() {
			t.Error("the reserve was kept")
		}
		if n < 3 {
			return syscall.EMFILE
		}
		return nil
	}); err != nil || n != 3 {
		t.Errorf("%v after %d attempts, want 3", err, n)
	}
	if !ended(c) {
		t.Error("the stranger is still there")
	}
}

// Two doors leave half of the files to the work, at any limit that is not tiny.
func TestPlacesFollowFromTheLimitOfFiles(t *testing.T) {
	t.Parallel()
	for files, want := range map[int]int{0: 8, 64: 8, 256: 32, 512: 64, 1024: 128, 4096: 256, shortage.Unlimited: 256} {
		if got := placesOf(files); got != want {
			t.Errorf("%d files: %d places, want %d", files, got, want)
		}
	}
}

// The places of another protocol are counted likewise.
func TestConnectionsOfOtherProtocolsHavePlaces(t *testing.T) {
	t.Parallel()
	d := New(Config{Places: 4})
	var others []net.Conn
	var last *Place
	for range 7 {
		a, b := net.Pipe()
		last = d.Enter(a)
		others = append(others, b)
	}
	if n := d.Waiting(); n != 4 {
		t.Errorf("%d places, want 4", n)
	}
	if _, err := others[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the oldest: %v", err)
	}
	last.Settle()
	if n := d.Waiting(); n != 3 {
		t.Errorf("%d places, want 3", n)
	}
	last.Vacate()
	if n := d.Waiting(); n != 3 {
		t.Errorf("%d places, want 3", n)
	}
}
