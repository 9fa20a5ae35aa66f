package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"clustergym/internal/ordinary"
)

// Options says how to fetch. The zero value fetches from the publishers.
type Options struct {
	// Mirror is an address with the same paths as Publisher, to fetch from instead; "" = Publisher. See CheckMirror.
	Mirror string
	// Progress is called with the number of an entry's bytes that have arrived. The number falls if a transfer restarts.
	// May be nil.
	Progress func(e *Entry, done, all int64)
	// Note is called with one line for people about waiting and new attempts. May be nil.
	Note func(line string)
}

// Getter fetches entries into one folder. Several Getters, in one process or in several, can use a folder at the same
// time. A single Getter is not safe for concurrent use.
type Getter struct {
	dir      string
	base     string
	opt      Options
	client   *http.Client
	attempts int           // attempts in a row without a new byte
	pause    time.Duration // before the second attempt; doubled before each further one
	stall    time.Duration // longest time without a byte
	write    func(p *part) // lets tests change a part; nil = none
}

// maxPause limits the time between two attempts.
const maxPause = 8 * time.Second

// NewGetter returns a Getter for dir, which need not exist.
func NewGetter(dir string, opt Options) *Getter {
	g := &Getter{dir: dir, base: Publisher, opt: opt, client: newClient(), attempts: 5, pause: time.Second / 2,
		stall: stallTime}
	if opt.Mirror != "" {
		g.base = opt.Mirror
	}
	if g.opt.Progress == nil {
		g.opt.Progress = func(*Entry, int64, int64) {}
	}
	if g.opt.Note == nil {
		g.opt.Note = func(string) {}
	}
	return g
}

// StoppedError is returned if the context ends a transfer. It unwraps to the context's error.
type StoppedError struct {
	Entry      string
	Done, Size int64 // bytes on disk, and bytes of all files
	Err        error
}

// Error says how much has arrived and that the same command continues.
func (e *StoppedError) Error() string {
	if e.Done == 0 {
		return fmt.Sprintf("nothing of %s has arrived yet; the same command begins again", e.Entry)
	}
	return fmt.Sprintf("%s of %s of %s have arrived and are kept; the same command goes on from there", FormatSize(e.Done),
		FormatSize(e.Size), e.Entry)
}

// Unwrap returns Err.
func (e *StoppedError) Unwrap() error { return e.Err }

// Get fetches the files of e, an entry from source s, that the folder does not have with the right hash. It reports
// whether it fetched anything. If the folder has all files, Get does not use the network.
//
// An incomplete file is kept under another name, so that an interrupted transfer continues where it ended. A complete
// file gets its name only if its hash is right; otherwise it is removed and the error is a *HashError. If ctx ends, the
// error is a *StoppedError. For a folder that cannot be written it is a *FolderError.
func (g *Getter) Get(ctx context.Context, s *Source, e *Entry) (fetched bool, err error) {
	if right, err := e.right(g.dir); right || err != nil {
		return false, err
	}
	if err := os.MkdirAll(g.dir, 0o755); err != nil {
		return false, &FolderError{g.dir, ordinary.Reason(err)}
	}
	unlock, err := g.lock(ctx, e)
	if err != nil {
		return false, err
	}
	defer unlock()
	var done int64
	for i := range e.Files {
		f := &e.Files[i]
		target := e.target(g.dir, f)
		right, err := isFile(target, f) // another process may have fetched it in the meantime
		if err != nil {
			return fetched, &FolderError{g.dir, ordinary.Reason(err)}
		}
		if !right {
			fetched = true
			tell := func(n int64) { g.opt.Progress(e, done+n, e.Size()) }
			if err := g.file(ctx, s.URL(g.base, f), f, target, tell); err != nil {
				if stop, ok := errors.AsType[*StoppedError](err); ok {
					stop.Entry, stop.Done, stop.Size = e.Name, done+stop.Done, e.Size()
					return true, stop
				}
				return true, fmt.Errorf("public trace %s: %w", e.Name, err)
			}
		}
		done += f.Size
	}
	return fetched, nil
}

// right reports whether dir has all files of e with the right hashes.
func (e *Entry) right(dir string) (bool, error) {
	for i := range e.Files {
		right, err := isFile(e.target(dir, &e.Files[i]), &e.Files[i])
		if err != nil {
			return false, &FolderError{dir, ordinary.Reason(err)}
		}
		if !right {
			return false, nil
		}
	}
	return true, nil
}

// isFile reports whether the file at path has f's size and hash.
func isFile(path string, f *File) (bool, error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if st.IsDir() {
		return false, fmt.Errorf("%s in it is a folder, a file is wanted", filepath.Base(path))
	}
	if st.Size() != f.Size {
		return false, nil
	}
	got, err := ordinary.SHA256(path)
	return got == f.SHA256, err
}

// file fetches one file.
func (g *Getter) file(ctx context.Context, address string, f *File, target string, tell func(n int64)) error {
	p, err := openPart(target, f)
	if err != nil {
		return err
	}
	if g.write != nil {
		g.write(p)
	}
	for {
		if err := g.bytes(ctx, address, f, p, tell); err != nil {
			done := p.n
			p.close()
			if ctx.Err() != nil {
				return &StoppedError{Done: done, Err: ctx.Err()}
			}
			return fmt.Errorf("%s: %w", address, err)
		}
		err := p.finish(target, f)
		if err == nil {
			return nil
		}
		wrong, ok := errors.AsType[*HashError](err)
		if !ok {
			p.close()
			return fmt.Errorf("%s cannot be put in its place: %w", target, err)
		}
		if !p.old {
			p.remove()
			wrong.URL = address
			return wrong
		}
		// The beginning is from an earlier transfer, perhaps from another server. The whole file is fetched once from this
		// one.
		g.opt.Note(f.To + " does not fit together with what was kept of an earlier transfer; it is fetched anew")
		if err := p.restart(""); err != nil {
			p.close()
			return err
		}
	}
}

// bytes fetches the missing bytes of p in as many attempts as it takes. It gives up after g.attempts in a row without a
// new byte.
func (g *Getter) bytes(ctx context.Context, address string, f *File, p *part, tell func(n int64)) error {
	most, pause := p.n, g.pause
	for failed := 0; ; {
		err := g.transfer(ctx, address, f, p, func() { tell(p.n) })
		pass, ok := errors.AsType[*passingError](err)
		if !ok {
			return err
		}
		if failed++; p.n > most {
			most, failed, pause = p.n, 1, g.pause
		}
		if failed == g.attempts {
			return fmt.Errorf("%w; given up after %d attempts, %s are kept", pass.err, failed, FormatSize(p.n))
		}
		wait := max(pause, pass.wait)
		g.opt.Note(fmt.Sprintf("%s: %v; next attempt in %v", f.To, pass.err, wait))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
		pause = min(2*pause, maxPause)
	}
}

// lock waits until no other process fetches e into the folder, and keeps others out until unlock is called.
func (g *Getter) lock(ctx context.Context, e *Entry) (unlock func(), err error) {
	path := filepath.Join(g.dir, "."+e.Name+".lock")
	for told := false; ; {
		unlock, err := tryLock(path)
		if err != nil {
			return nil, &FolderError{g.dir, ordinary.Reason(err)}
		}
		if unlock != nil {
			return unlock, nil
		}
		if !told {
			g.opt.Note("another process is fetching " + e.Name + "; waiting for it")
			told = true
		}
		select {
		case <-ctx.Done():
			return nil, &StoppedError{Entry: e.Name, Size: e.Size(), Err: ctx.Err()}
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Copy copies e from the folder from to the folder to, and returns its path there. If to has another file of the same
// name, Copy does not replace it and returns an error.
func Copy(e *Entry, from, to string) (string, error) {
	for i := range e.Files {
		f := &e.Files[i]
		source, target := e.target(from, f), e.target(to, f)
		right, err := isFile(target, f)
		if err != nil {
			return "", &FolderError{to, ordinary.Reason(err)}
		}
		if right {
			continue
		}
		if _, err := os.Lstat(target); err == nil {
			return "", &FolderError{to, fmt.Errorf("%s is there already and is another file", target)}
		}
		if err := copyFile(source, target); err != nil {
			return "", &FolderError{to, ordinary.Reason(err)}
		}
	}
	return e.Path(to), nil
}

// copyFile copies a regular file. The copy appears completely or not at all.
func copyFile(source, target string) error {
	in, err := ordinary.Open(source)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // open for reading only
	dir := filepath.Dir(target)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	out, err := os.CreateTemp(dir, "."+filepath.Base(target)+".*.part")
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Chmod(0o644)
	}
	if err == nil {
		err = out.Sync()
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(out.Name(), target)
	}
	if err != nil {
		_ = os.Remove(out.Name()) // the first fault matters more
	}
	return err
}
