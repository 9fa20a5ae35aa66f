package workqueue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"clustergym/internal/packed"
	"clustergym/internal/plain"
)

// transferTime bounds a download, and stallTime how long nothing of it may arrive: an answer that a lost connection has
// swallowed never comes.
const (
	transferTime = 24 * time.Hour
	stallTime    = 15 * time.Second
)

// mostBytes bounds a value or an input in memory: those of the largest experiments have some megabytes.
const mostBytes = 256 << 20

// kindHeader is the header of an object that says whether it is a file or a folder.
const kindHeader = "Gymctl-Kind"

// store is the object store of a job.
type store struct {
	objects jetstream.ObjectStore
	nc      *nats.Conn
	chunk   uint32

	mu   sync.Mutex
	seen map[string]string // what a path's files look like → digest, so that nothing is read twice
}

func newStore(objects jetstream.ObjectStore, nc *nats.Conn) *store {
	return &store{objects: objects, nc: nc, chunk: uint32(min(512<<10, nc.MaxPayload()/2)), seen: map[string]string{}}
}

// errAway ends a transfer when the connection is lost: its answers are lost too, and waiting for them would take its
// whole time.
var errAway = errors.New("the connection was lost")

// connected returns a context that ends when the connection is lost.
func (s *store) connected(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	lost := s.nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	if !s.nc.IsConnected() {
		cancel(errAway)
	}
	go func() {
		select {
		case <-lost:
			cancel(errAway)
		case <-ctx.Done():
		}
		s.nc.RemoveStatusListener(lost)
	}()
	return ctx, func() { cancel(nil) }
}

// away replaces the error of a transfer in a context of connected.
func away(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errAway) {
		return errAway
	}
	return err
}

// digest returns the digest of the content of a path.
func (s *store) digest(ctx context.Context, path string) (digest, kind string, list []packed.Entry, err error) {
	kind, sum, list, err := packed.Look(path)
	if err != nil {
		return "", "", nil, err
	}
	s.mu.Lock()
	digest, ok := s.seen[sum]
	s.mu.Unlock()
	if ok {
		return digest, kind, list, nil
	}
	h := packed.NewHash(kind)
	if err := packed.Write(ctx, h, path, kind, list); err != nil {
		return "", "", nil, err
	}
	digest = packed.Sum(h)
	s.mu.Lock()
	s.seen[sum] = digest
	s.mu.Unlock()
	return digest, kind, list, nil
}

// put stores a path under the name that name makes of its digest, unless it is there.
func (s *store) put(ctx context.Context, path string, name func(digest string) string) (string, error) {
	digest, kind, list, err := s.digest(ctx, path)
	if err != nil {
		return "", err
	}
	ok, err := s.has(ctx, name(digest))
	if err != nil || ok {
		return digest, err
	}
	got, err := s.upload(ctx, name(digest), path, kind, list)
	if err == nil && got != digest {
		err = errors.Join(fmt.Errorf("%s changed while it was sent", path), s.remove(ctx, name(digest)))
	}
	return digest, err
}

// upload stores a path under a name, and returns its digest.
func (s *store) upload(ctx context.Context, name, path, kind string, list []packed.Entry) (string, error) {
	r, digest := packed.Reader(ctx, path, kind, list)
	defer func() { _ = r.Close() }() // ends the packer
	if err := s.write(ctx, name, kind, r); err != nil {
		return "", err
	}
	return digest(), nil
}

// write stores what a reader has. Its context has no deadline, so that the store bounds the time of each piece instead.
func (s *store) write(ctx context.Context, name, kind string, r io.Reader) error {
	meta := jetstream.ObjectMeta{Name: name, Headers: nats.Header{kindHeader: {kind}},
		Opts: &jetstream.ObjectMetaOptions{ChunkSize: s.chunk}}
	ctx, cancel := s.connected(ctx)
	defer cancel()
	if _, err := s.objects.Put(ctx, meta, packed.Full{R: r}); err != nil {
		return fmt.Errorf("the store does not take %s: %w", name, away(ctx, err))
	}
	return nil
}

// has reports whether there is an object of that name.
func (s *store) has(ctx context.Context, name string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	_, err := s.objects.GetInfo(ctx, name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return false, nil
	}
	return err == nil, away(ctx, err)
}

func (s *store) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	if err := s.objects.Delete(ctx, name); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return err
	}
	return nil
}

// errGone is returned by get if there is no object of that name.
var errGone = errors.New("it is not in the store")

// arrival reads an object.
type arrival struct {
	jetstream.ObjectResult
	stall  *time.Timer // cancels the transfer
	cancel context.CancelFunc
}

// Read implements io.Reader.
func (a *arrival) Read(p []byte) (int, error) {
	a.stall.Reset(stallTime)
	return a.ObjectResult.Read(p)
}

// Close ends the transfer.
func (a *arrival) Close() error {
	a.stall.Stop()
	err := a.ObjectResult.Close()
	a.cancel()
	return err
}

// open begins to read an object.
func (s *store) open(ctx context.Context, name string) (*arrival, error) {
	ctx, cancel := context.WithTimeout(ctx, transferTime)
	stall := time.AfterFunc(stallTime, cancel)
	o, err := s.objects.Get(ctx, name)
	if err != nil {
		stall.Stop()
		cancel()
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			err = fmt.Errorf("%s: %w", name, errGone)
		}
		return nil, err
	}
	return &arrival{o, stall, cancel}, nil
}

// folder is get for an object that must be a folder.
func (s *store) folder(ctx context.Context, name, path, want string) error {
	return s.get(ctx, name, path, want, packed.Folder)
}

// get writes an object of one of kinds to path, which is a folder if the object is one. want is its expected digest, ""
// = unknown.
func (s *store) get(ctx context.Context, name, path, want string, kinds ...string) error {
	o, err := s.open(ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = o.Close() }() // read to its end, or failed
	info, err := o.Info()
	if err != nil {
		return err
	}
	kind := info.Headers.Get(kindHeader)
	if !slices.Contains(kinds, kind) {
		return fmt.Errorf("%s in the store has the kind %q, want %s", name, plain.Clip(kind, 20), strings.Join(kinds, " or "))
	}
	got, err := packed.Unpack(o, path, kind)
	if err == nil {
		_, err = io.Copy(io.Discard, o) // the end, where the store compares its own sum
	}
	if err != nil {
		return fmt.Errorf("%s from the store: %w", name, err)
	}
	if want != "" && got != want {
		return fmt.Errorf("%s from the store has the digest %s, want %s", name, got, want)
	}
	return nil
}

// bytes and putBytes keep values that are too large for a message, as they are.
func (s *store) bytes(ctx context.Context, name string) ([]byte, error) {
	o, err := s.open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = o.Close() }() // read to its end, or failed
	b, err := io.ReadAll(io.LimitReader(o, mostBytes+1))
	if err == nil && len(b) > mostBytes {
		err = fmt.Errorf("%s has more than %d MiB", name, mostBytes>>20)
	}
	return b, err
}

func (s *store) putBytes(ctx context.Context, name string, data []byte) error {
	return s.write(ctx, name, "bytes", bytes.NewReader(data))
}

// filesName is the name in the store of a result's folder. It has the task's digest, so that a folder can be removed
// with its task although another one has the same content.
func filesName(task, digest string) string { return "files/" + task + "/" + digest }

// splitFiles takes a filesName apart.
func splitFiles(name string) (task, digest string, err error) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 || parts[0] != "files" || !hexDigest.MatchString(parts[1]) || !hexDigest.MatchString(parts[2]) {
		return "", "", errors.New("files " + strconv.Quote(name) + ": want the name that a result has")
	}
	return parts[1], parts[2], nil
}
