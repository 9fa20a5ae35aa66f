package envs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"clustergym/bridge/budget"
	"clustergym/bridge/server"
	"clustergym/bridge/wire"
	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
)

// factory makes a server's environments from a registry.
type factory struct {
	registry *Registry

	mu   sync.Mutex
	list []server.Listing // nil = not known yet
}

// NewFactory returns a factory with which a server serves the environments of r.
func NewFactory(r *Registry) server.Factory { return &factory{registry: r} }

// UseBudget implements server.Budgeted.
func (f *factory) UseBudget(b *budget.Budget) { f.registry.UseBudget(b) }

// List implements server.Factory.
func (f *factory) List() []server.Listing {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.list != nil {
		return slices.Clone(f.list)
	}
	f.list = f.describe()
	return slices.Clone(f.list)
}

// describe lists all environments. The hash of a scenario of jobs is left out: it is of the jobs, and to load those of
// every environment would take seconds and a quarter of a gigabyte. The reply to an open has it.
func (f *factory) describe() (all []server.Listing) {
	for _, id := range IDs() {
		info, err := Describe(id, nil)
		if err != nil {
			panic(fmt.Sprintf("experiments: %s with its defaults: %v", id, err)) // tests check the defaults of every environment
		}
		l := server.Listing{ID: id, Spec: info.Spec, Kwargs: info.Kwargs}
		if d := Find(id); !d.Simulated() {
			if l.SHA, err = f.registry.scenario(context.Background(), d); err != nil {
				panic(fmt.Sprintf("experiments: %s with its defaults: %v", id, err))
			}
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b server.Listing) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Make implements server.Factory.
func (f *factory) Make(ctx context.Context, id string, kwargs wire.Map, n int) (*server.Made, error) {
	m, err := f.registry.Make(ctx, id, kwargs, n)
	if err != nil {
		return nil, err
	}
	return &server.Made{Envs: m.Envs, SHA: m.SHA, Meta: m.Meta, Account: m.Account, Leave: m.leave}, nil
}

const (
	mostTokenBytes = 1 << 20 // a larger file is something else
	leastToken     = 16      // characters: 8 random bytes in hexadecimal, which cannot be guessed over a network
)

// ReadTokens reads a token file: one `ROLE TOKEN` per line, where ROLE is read, env or admin. Empty lines and lines
// that begin with # are skipped. A file that everybody may write is refused, and so are short tokens. Faults are
// *fault.Mistakes with file and line, and never show a token. warning says that more people than needed may read or
// write the file, "" means that all is well.
func ReadTokens(path string) (tokens []server.Token, warning string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, "", &fault.Mistake{Err: fmt.Errorf("token file: %w", err)}
	}
	defer f.Close() //nolint:errcheck // only read
	if warning, err = keptSafe(f); err == nil {
		tokens, err = parseTokens(path, io.LimitReader(f, mostTokenBytes+1))
	}
	if err != nil {
		return nil, "", &fault.Mistake{Err: err}
	}
	return tokens, warning, nil
}

// keptSafe looks at who may read and write a token file. Windows has no such bits, and a pipe has no readers but this
// one.
func keptSafe(f *os.File) (warning string, err error) {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || runtime.GOOS == "windows" {
		return "", err
	}
	mode := info.Mode().Perm()
	switch {
	case mode&0o002 != 0:
		return "",
			fmt.Errorf(
				"%s: everybody on this machine may write it (mode %04o), and so give themselves a token; want mode 0600 (chmod 600)", f.Name(), mode)
	case mode&0o004 != 0:
		return fmt.Sprintf("token file %s: everybody on this machine may read it (mode %04o); want mode 0600 or 0640",
			f.Name(), mode), nil
	case mode&0o020 != 0:
		return fmt.Sprintf("token file %s: its group may write it (mode %04o); want mode 0600 or 0640", f.Name(), mode), nil
	}
	return "", nil
}

func parseTokens(name string, r io.Reader) ([]server.Token, error) {
	var tokens []server.Token
	var faults []error
	lines, read := bufio.NewScanner(r), 0
	for n := 1; lines.Scan(); n++ {
		read += len(lines.Bytes()) + 1
		text := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if text == "" || text[0] == '#' {
			continue
		}
		wrong := func(format string, args ...any) {
			faults = append(faults, &configs.Error{File: name, Line: n, Err: fmt.Errorf(format, args...)})
		}
		words := strings.Fields(text)
		role, known := server.RoleNamed(words[0])
		switch {
		case len(words) != 2:
			wrong("got %s, want a role and a token, as in \"env 3f9c…\"", plain.Count(len(words), "word", "words"))
		case !known:
			wrong("got another first word, want the role read, env or admin before the token")
		case strings.ContainsFunc(words[1], func(r rune) bool { return r <= ' ' || r > '~' }):
			wrong("the token has a character that no HTTP header takes; want letters, digits and signs of ASCII")
		case len(words[1]) < leastToken:
			wrong("the token has %s, want at least %d, as of openssl rand -hex 32",
				plain.Count(len(words[1]), "character", "characters"), leastToken)
		default:
			tokens = append(tokens, server.Token{Role: role, Secret: words[1]})
		}
		if len(faults) >= 10 {
			break
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong) || err == nil && read > mostTokenBytes:
		return nil, fmt.Errorf("%s: this is too large for a token file; want lines of a role and a token", name)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case len(faults) > 0:
		return nil, errors.Join(faults...)
	case len(tokens) == 0:
		return nil, fmt.Errorf("%s: there is no token in it; want lines of a role and a token", name)
	}
	return tokens, nil
}
