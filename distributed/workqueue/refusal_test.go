//go:build unix

package workqueue

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"clustergym/internal/fault"
)

// refused checks that a worker is refused in one sentence, on both sides.
func refused(t *testing.T, opt WorkOptions, said *lines, worker, coordinator string) {
	t.Helper()
	opt.Patience = time.Minute
	_, _, end := start(t, opt)
	select {
	case err := <-end:
		if _, ok := errors.AsType[*fault.Mistake](err); !ok || !strings.Contains(err.Error(), worker) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("the worker ends with %v, want %q in it", err, worker)
		}
	case <-time.After(time.Minute):
		t.Fatal("the worker does not end")
	}
	if coordinator != "" {
		until(t, "said by the coordinator: "+coordinator, func() bool { return said.has(coordinator) })
		said.mu.Lock()
		defer said.mu.Unlock()
		if n := strings.Count(strings.Join(said.all, "\n"), coordinator); n != 1 {
			t.Errorf("said %d times: %s", n, coordinator)
		}
	}
}

func TestStrangersAreRefusedInOneSentence(t *testing.T) {
	t.Parallel()
	const token = "correct-horse-battery"
	c, said := listen(t, Options{Token: token, Build: "abc go1", Kernels: "avx512", Job: "topdrl"})
	good := WorkOptions{URL: c.URL(), Token: token, Build: "abc go1", Kernels: []string{"avx512", "avx2", "portable"}}
	change := func(name string, f func(o *WorkOptions)) WorkOptions {
		o := good
		o.Name = name
		f(&o)
		return o
	}
	refused(t, change("token", func(o *WorkOptions) { o.Token = "wrong-horse-battery" }), said,
		c.URL()+" refuses the token: want token-file with the coordinator's token",
		"worker token at 127.0.0.1 is refused: it presents another token than the coordinator has")
	refused(t, change("none", func(o *WorkOptions) { o.Token = noToken }), said,
		c.URL()+" refuses the token", "worker none at 127.0.0.1 is refused: it presents no token")
	text := "worker build is another build (def go1) than the coordinator (abc go1), so that its results could differ; start both from one executable"
	refused(t, change("build", func(o *WorkOptions) { o.Build = "def go1" }), said, text, text)
	text = "worker kernels has the kernels avx2 and portable and not avx512, in which this work is computed; start the coordinator with the kernels avx2 to let it help"
	refused(t, change("kernels", func(o *WorkOptions) { o.Kernels = o.Kernels[1:] }), said, text, text)
	refused(t, change("job", func(o *WorkOptions) { o.Job = "dally" }), said,
		c.URL()+" does the job topdrl and not dally; want job topdrl, or none",
		"worker job asks for job dally; this one is topdrl")
	refused(t,
		change("set", func(o *WorkOptions) { o.UseKernels = func(n string) error { return errors.New("no " + n) } }), said,
		"worker set: no avx512", "worker set has left: no avx512")
	refused(t, change("address", func(o *WorkOptions) { o.URL = "http://host:1" }), nil,
		`address: got "http://host:1", want nats://HOST:PORT`, "")
	refused(t, change("tls", func(o *WorkOptions) { o.URL = strings.Replace(o.URL, "nats:", "tls:", 1) }), nil,
		"has no TLS: want nats:// in place of tls://", "")

	// Another architecture: a hello that says so.
	nc, err := nats.Connect(c.URL(), nats.Token(token))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	h := hello{Protocol: protocol, Worker: "arch", Slots: 1, Build: "abc go1", Arch: "riscv64", Kernels: good.Kernels}
	m, err := nc.Request(helloSubject, encode(h), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var w welcome
	if err := json.Unmarshal(m.Data, &w); err != nil ||
		w.Refusal != "worker arch runs on riscv64 and the coordinator on "+runtime.GOARCH+
			", whose float64 results differ in the last bits; use machines of one architecture" {
		t.Errorf("%v: %q", err, w.Refusal)
	}
	// Nonsense is not answered, and harms nobody.
	for _, subject := range []string{helloSubject, statusSubject, c.job.subject("call"), c.job.done(digest("x")),
		c.job.work(digest("y"))} {
		for _, data := range []string{"", "{", `{"tasks":[{"digest":7}]}`, `{"kind":"begin","worker":"nobody"}`,
			`{"digest":"zz"}`} {
			if err := nc.Publish(subject, []byte(data)); err != nil {
				t.Error(err)
			}
		}
	}
	// None of them takes part, nothing is lost, and who is right is let in.
	used := ""
	start(t, change("good", func(o *WorkOptions) { o.UseKernels = func(n string) error { used = n; return nil } }))
	if o := within(t, background(t, c, square(7))); o.err != nil || string(o.r.Value) != "49" || used != "avx512" {
		t.Errorf("got %+v with kernels %q", o, used)
	}
	list, err := AskStatus(t.Context(), WorkOptions{URL: c.URL(), Token: token})
	if err != nil || len(list) != 1 || list[0].Job != "topdrl" || list[0].Done != 1 || len(list[0].Workers) != 1 ||
		list[0].Workers[0].Name != "good" {
		t.Errorf("%v: %+v", err, list)
	}
	if _, err := AskStatus(t.Context(), WorkOptions{URL: c.URL(), Token: "wrong-horse-battery"}); err == nil ||
		!strings.Contains(err.Error(), "refuses the token") {
		t.Errorf("got %v", err)
	}
	if _, err := AskStatus(t.Context(), WorkOptions{URL: c.URL(), Token: token, Job: "dally"}); err == nil ||
		!strings.Contains(err.Error(), "has no coordinator of job dally now") {
		t.Errorf("got %v", err)
	}
}

func TestListenRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = busy.Close() }()
	for _, c := range []struct {
		opt  Options
		want string
	}{
		{Options{}, "want one of listen HOST:PORT and queue URL"},
		{Options{Listen: "a:1", Queue: "b:1", Dir: dir}, "want one of listen"},
		{Options{Listen: "7777", Dir: dir}, `listen: got "7777", want HOST:PORT`},
		{Options{Listen: "127.0.0.1:99999", Dir: dir}, "want HOST:PORT"},
		{Options{Listen: ":7777", Dir: dir}, "listen :7777: everyone who reaches this address"},
		{Options{Listen: "127.0.0.1:0", Dir: dir}, "use token-file FILE"},
		{Options{Listen: "localhost:0", Dir: dir}, "use token-file FILE"},
		{Options{Listen: "[::1]:0", Dir: dir}, "use token-file FILE"},
		{Options{Listen: busy.Addr().String(), Dir: dir}, "address already in use"},
		{Options{Listen: "127.0.0.1:0", Dir: dir, Job: "a.b"}, `job: got "a.b"`},
		{Options{Listen: "127.0.0.1:0", Dir: dir, Tries: -1}, "tries: got -1"},
		{Options{Listen: "127.0.0.1:0", Dir: dir, AckWait: 1}, "ack-wait: got 1ns"},
		{Options{Listen: "127.0.0.1:0", Dir: dir, TLSCert: "x"}, "tls-cert and tls-key go together"},
		{Options{Listen: "127.0.0.1:0", Dir: dir, TLSCert: "x", TLSKey: "y"}, "tls-cert x with tls-key y: "},
		{Options{Queue: busy.Addr().String(), TLSCA: filepath.Join(dir, "none")}, "tls-ca: "},
		{Options{Queue: "ftp://x"}, "queue: address: got"},
	} {
		if c.opt.Queue == "" && !strings.Contains(c.want, "token-file") && !strings.Contains(c.want, "everyone") {
			c.opt.Token = testToken
		}
		k, err := Listen(t.Context(), c.opt)
		if err == nil {
			_ = k.Close()
		}
		if _, ok := errors.AsType[*fault.Mistake](err); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.opt, err, c.want)
		}
	}
	c, _ := listen(t, Options{})
	if _, err := Listen(t.Context(), Options{Listen: "127.0.0.1:0", Token: testToken, Dir: c.opt.Dir}); err == nil ||
		!strings.Contains(err.Error(), "is in use by another process") {
		t.Errorf("got %v", err)
	}
}

func TestTokensComeFromFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	for _, c := range []struct{ text, want string }{
		{"0123456789abcdef\n", ""}, {"0123456789abcdef", ""}, {"short\n", "got a token of 5 characters, want 16 or more"},
		{"", "of 0 characters"},
		{"two lines of it\nand more\n", "want one line without spaces"}, {strings.Repeat("x", 5000), "want one line"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		token, err := ReadToken(path)
		if c.want == "" && (err != nil || token != "0123456789abcdef") ||
			c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: got %q, %v", c.text, token, err)
		}
	}
	if err := errors.Join(os.WriteFile(path, []byte("0123456789abcdef"), 0o600), os.Chmod(path, 0o666)); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadToken(path); err == nil || !strings.Contains(err.Error(), "everybody may write it") {
		t.Errorf("got %v", err)
	}
	if _, err := ReadToken(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// certificates makes an authority and a certificate of it for this machine.
func certificates(t *testing.T) (ca, cert, key string) {
	t.Helper()
	dir := t.TempDir()
	issue := func(serial int64, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey,
		string, string) {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		c := &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour),
			NotAfter:              time.Now().Add(24 * time.Hour),
			BasicConstraintsValid: true, IsCA: parent == nil, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		}
		if parent == nil {
			parent, by = c, k
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, &k.PublicKey, by)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := x509.MarshalECPrivateKey(k)
		if err != nil {
			t.Fatal(err)
		}
		c, err = x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		write := func(name, kind string, data []byte) string {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
		n := big.NewInt(serial).String()
		return c, k, write("cert"+n, "CERTIFICATE", der), write("key"+n, "EC PRIVATE KEY", secret)
	}
	root, by, ca, _ := issue(1, nil, nil)
	_, _, cert, key = issue(2, root, by)
	return ca, cert, key
}

func TestTLS(t *testing.T) {
	t.Parallel()
	ca, cert, key := certificates(t)
	other, _, _ := certificates(t)
	const token = "correct-horse-battery"
	c, _ := listen(t, Options{Token: token, TLSCert: cert, TLSKey: key})
	if !strings.HasPrefix(c.URL(), "tls://127.0.0.1:") {
		t.Errorf("got %s", c.URL())
	}
	refused(t, WorkOptions{URL: c.URL(), Token: token, TLSCA: other, Name: "a"}, nil,
		"shows a certificate that is not trusted", "")
	refused(t, WorkOptions{URL: c.URL(), Token: token, Name: "b"}, nil, "want tls-ca with the authority that signed it",
		"")
	refused(t, WorkOptions{URL: c.URL(), Token: "wrong-horse-battery", TLSCA: ca, Name: "c"}, nil, "refuses the token", "")
	start(t, WorkOptions{URL: c.URL(), Token: token, TLSCA: ca, Name: "good"})
	if o := within(t, background(t, c, square(9))); o.err != nil || string(o.r.Value) != "81" {
		t.Errorf("got %+v", o)
	}
}

// natsServer is a NATS that exists already.
func natsServer(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	o.Host, o.NoLog, o.NoSigs = "127.0.0.1", true, true
	if o.Port == 0 {
		o.Port = server.RANDOM_PORT
	}
	s, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("no NATS")
	}
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s
}

func TestAnExistingNATS(t *testing.T) {
	t.Parallel()
	const token = "correct-horse-battery"
	store := t.TempDir()
	_, text, err := net.SplitHostPort(fixed(t))
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	s := natsServer(t, server.Options{JetStream: true, StoreDir: store, Authorization: token, Port: port})
	url := s.ClientURL()
	if _, err := Listen(t.Context(), Options{Queue: url, Token: "wrong-horse-battery"}); err == nil ||
		!strings.Contains(err.Error(), "refuses the token") {
		t.Errorf("got %v", err)
	}
	bare := natsServer(t, server.Options{})
	if _, err := Listen(t.Context(), Options{Queue: bare.ClientURL()}); err == nil ||
		!strings.Contains(err.Error(), "has no JetStream, which queue needs: start nats-server with --jetstream") {
		t.Errorf("got %v", err)
	}
	// Two jobs share it.
	one, said := listen(t, Options{Queue: url, Token: token, Job: "one", Tries: 1000})
	two, _ := listen(t, Options{Queue: url, Token: token, Job: "two"})
	if _, err := Listen(t.Context(), Options{Queue: url, Token: token, Job: "two"}); err == nil ||
		!strings.Contains(err.Error(), "job two has a coordinator at") {
		t.Errorf("got %v", err)
	}
	gate := filepath.Join(t.TempDir(), "gate")
	start(t, WorkOptions{URL: url, Token: token, Job: "one", Name: "a", Slots: 2})
	_, _, end := start(t, WorkOptions{URL: url, Token: token, Job: "two", Name: "b"})
	if o := within(t, background(t, two, square(5))); o.err != nil || o.r.Worker != "b" {
		t.Errorf("got %+v", o)
	}
	if list, err := AskStatus(t.Context(), WorkOptions{URL: url, Token: token}); err != nil || len(list) != 2 ||
		list[0].Job != "one" || list[1].Done != 1 {
		t.Errorf("%v: %+v", err, list)
	}
	if err := two.Close(); err != nil {
		t.Error(err)
	}
	if err := <-end; err != nil {
		t.Error(err)
	}
	// The NATS goes away and comes back: both sides wait, and go on.
	held := background(t, one, newTask("gate", "held", gated{Gate: gate, Number: 6}))
	until(t, "begun", func() bool { return doing(one, "a") == "held" })
	s.Shutdown()
	s.WaitForShutdown()
	touch(t, gate)
	more := background(t, one, square(8))
	until(t, "said", func() bool { return said.has("does not take tasks") })
	natsServer(t, server.Options{JetStream: true, StoreDir: store, Authorization: token, Port: port})
	if o := within(t, held); o.err != nil || string(o.r.Value) != "42" {
		t.Errorf("got %+v", o)
	}
	if o := within(t, more); o.err != nil || string(o.r.Value) != "64" {
		t.Errorf("got %+v", o)
	}
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	nc, err := nats.Connect(url, nats.Token(token))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := nc.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	for name := range js.StreamNames() {
		t.Errorf("stream %s is left", name)
	}
}
