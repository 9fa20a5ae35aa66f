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
)

// Options says how to fetch. The zero value fetches from the publishers.
type Options struct {
	// Mirror stands in the place of Publisher and keeps the paths below it; "" = Publisher. See CheckMirror.
	Mirror string
	// Progress is told how many of an entry's bytes have arrived; the number falls when a transfer begins anew.
	Progress func(e *Entry, done, all int64)
	// Note is told one line for people: what is waited for, what is tried again.
	Note func(line string)
}

// Getter fetches entries into one folder. Several, in one process or in many, can work on one folder at once. Not safe
// for concurrent use itself.
type Getter struct {
	dir      string
	base     string
	opt      Options
	client   *http.Client
	attempts int           // without a single byte more than before
	pause    time.Duration // before the second attempt; doubled for each that follows
	stall    time.Duration
	write    func(p *part) // a test's hold on a part; nil = none
}

// maxPause bounds the time between two attempts.
const maxPause = 8 * time.Second

// NewGetter makes a Getter for dir, which need not exist.
func NewGetter(dir string, opt Options) *Getter {
	g := &Getter{dir: dir, base: Publisher, opt: opt, client: newClient(), attempts: 5, pause: time.Second / 2, stall: stallTime}
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

// StoppedError says that the context ended a transfer. It unwraps to the context's error.
type StoppedError struct {
	Entry      string
	Done, Size int64 // bytes that are on disk, of those of all files
	Err        error
}

func (e *StoppedError) Error() string {
	if e.Done == 0 {
		return fmt.Sprintf("nothing of %s has arrived yet; the same command begins again", e.Entry)
	}
	return fmt.Sprintf("%s of %s of %s have arrived and are kept; the same command goes on from there", FormatSize(e.Done), FormatSize(e.Size), e.Entry)
}

// Unwrap is Err.
func (e *StoppedError) Unwrap() error { return e.Err }

// Get sees to it that e, an entry from source s, stands in the folder, and says whether anything had to be fetched for
// that. Files that are there with the right hash are left alone, and then nothing is asked of the net.
//
// What arrives is kept beside its place until it is whole, so that a broken transfer goes on where it ended, and takes
// its place only when the hash is right; else it is a *HashError, and removed. When ctx ends: a *StoppedError. A folder
// that cannot be written is a *FolderError.
func (g *Getter) Get(ctx context.Context, s *Source, e *Entry) (fetched bool, err error) {
	if right, err := e.right(g.dir); right || err != nil {
		return false, err
	}
	if err := os.MkdirAll(g.dir, 0o755); err != nil {
		return false, &FolderError{g.dir, reason(err)}
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
		right, err := isFile(target, f) // another process may have brought it meanwhile
		if err != nil {
			return fetched, &FolderError{g.dir, reason(err)}
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

// right says whether all files of e stand in dir with their hashes.
func (e *Entry) right(dir string) (bool, error) {
	for i := range e.Files {
		right, err := isFile(e.target(dir, &e.Files[i]), &e.Files[i])
		if err != nil {
			return false, &FolderError{dir, reason(err)}
		}
		if !right {
			return false, nil
		}
	}
	return true, nil
}

// isFile says whether f stands at path.
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
	got, err := hashOf(path)
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
		// The beginning came at another time, perhaps from another server: all of it from one is tried once.
		g.opt.Note(f.To + " does not fit together with what was kept of an earlier transfer; it is fetched anew")
		if err := p.restart(""); err != nil {
			p.close()
			return err
		}
	}
}

// bytes brings p to its full length in as many attempts as it takes, but no more than g.attempts in a row of which none
// got further.
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

// lock waits until no other process fetches e into the folder.
func (g *Getter) lock(ctx context.Context, e *Entry) (unlock func(), err error) {
	path := filepath.Join(g.dir, "."+e.Name+".lock")
	for told := false; ; {
		unlock, err := tryLock(path)
		if err != nil {
			return nil, &FolderError{g.dir, reason(err)}
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

// Copy puts e, which stands in the folder from, also into the folder to. A file that is there and is another one is
// left alone, and an error. It returns where e stands in to.
func Copy(e *Entry, from, to string) (string, error) {
	for i := range e.Files {
		f := &e.Files[i]
		source, target := e.target(from, f), e.target(to, f)
		right, err := isFile(target, f)
		if err != nil {
			return "", &FolderError{to, reason(err)}
		}
		if right {
			continue
		}
		if _, err := os.Lstat(target); err == nil {
			return "", &FolderError{to, fmt.Errorf("%s is there already and is another file", target)}
		}
		if err := copyFile(source, target); err != nil {
			return "", &FolderError{to, reason(err)}
		}
	}
	return e.Path(to), nil
}

// copyFile copies an ordinary file; the copy appears as a whole or not at all.
func copyFile(source, target string) error {
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
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
		_ = os.Remove(out.Name()) // the first fault is the one to tell
	}
	return err
}
