package slurm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"clustergym/live"
)

// Call is one run of a command.
type Call struct {
	Args []string  // the program and its arguments
	In   io.Reader // its standard input; nil = none
	// Out reads standard output until its end or an error; nil = it is thrown away. Err receives each line of standard
	// error, at the same time as Out reads; it ends the command by returning false. nil = lines are kept for the error.
	Out func(io.Reader) error
	Err func(line string) bool
}

// Runner runs Slurm's commands. The error has what the command said; it wraps exec.ErrNotFound if there is no such
// program, and an *ExitError if it ended with another code than 0.
type Runner interface {
	Run(ctx context.Context, c Call) error
}

// ExitError is a command that has failed.
type ExitError struct {
	Program string
	Code    int
	Said    string // what it wrote on standard error, at most a few lines
}

func (e *ExitError) Error() string {
	if e.Said == "" {
		return fmt.Sprintf("%s ended with code %d", e.Program, e.Code)
	}
	return e.Program + ": " + e.Said
}

// Exec runs commands as child processes. Times are asked for as seconds since 1970, and variables that filter what
// squeue and its siblings show are taken away.
type Exec struct {
	Env     []string      // further variables, as SLURM_CONF=/etc/slurm/slurm.conf, also behind Prefix
	Prefix  []string      // of every command, as setpriv --reuid=65534
	Shell   bool          // Prefix hands one line to a shell, as SSH does
	Timeout time.Duration // of one command; 0 = a minute
	Bound   int64         // bytes of standard output that are read at most; 0 = 1 GiB
}

var (
	_ Runner = Exec{}

	// standing are the variables under which commands run.
	standing = []string{"TZ=UTC", "LC_ALL=C", "SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0"}
	// filters begin the names of variables that change what commands show.
	filters = []string{"SQUEUE_", "SINFO_", "SPRIO_", "SACCT_", "SCONTROL_"}
)

// SSH returns the Prefix, with Shell, that runs commands on host: a name of ~/.ssh/config, or user@name. It never asks
// for a password.
func SSH(host string) []string {
	return []string{"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "--", host}
}

// Run implements Runner.
func (e Exec) Run(ctx context.Context, c Call) error {
	if e.Timeout == 0 {
		e.Timeout = time.Minute
	}
	if e.Bound == 0 {
		e.Bound = 1 << 30
	}
	parent := ctx
	ctx, stop := context.WithTimeoutCause(parent, e.Timeout,
		fmt.Errorf("%w: %s has not answered within %v", live.ErrUnreachable, c.Args[0], e.Timeout))
	defer stop()
	args := c.Args
	if len(e.Prefix) > 0 {
		words := slices.Concat([]string{"env"}, standing, e.Env, c.Args)
		if e.Shell {
			words = []string{quoted(words)}
		}
		args = slices.Concat(e.Prefix, words)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // the commands of this package, with checked arguments
	env := slices.DeleteFunc(cmd.Environ(), func(v string) bool {
		return slices.ContainsFunc(filters, func(f string) bool { return strings.HasPrefix(v, f) })
	})
	cmd.Env = slices.Concat(env, standing, e.Env)
	cmd.Stdin = c.In
	cmd.WaitDelay = time.Second // grandchildren may hold the pipes
	said := &lines{each: c.Err, stop: stop}
	cmd.Stderr = said
	var failed error
	if c.Out == nil {
		failed = cmd.Run()
	} else {
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return notFound(args[0], err)
		}
		bounded := &bounded{r: out, left: e.Bound, program: c.Args[0]}
		err = c.Out(bounded)
		if err == nil {
			_, err = io.Copy(io.Discard, bounded)
		}
		if err != nil {
			stop()
		}
		if failed = cmd.Wait(); err != nil && context.Cause(ctx) == context.Canceled {
			failed = err // what the reader found, and not that it was ended for it
		} else if failed == nil {
			failed = err
		}
	}
	said.flush()
	if said.stopped {
		return nil // Err wanted no more
	}
	if parent.Err() != nil {
		return context.Cause(parent)
	}
	if cause := context.Cause(ctx); errors.Is(cause, live.ErrUnreachable) {
		return cause
	}
	if exit, ok := errors.AsType[*exec.ExitError](failed); ok {
		return e.ended(&ExitError{c.Args[0], exit.ExitCode(), said.text.String()})
	}
	return notFound(args[0], failed)
}

// ended adds to the error of a command that ran behind a Prefix what its code means: 127 that env found no such
// program, and 255 that ssh did not get through, or was not let in.
func (e Exec) ended(err *ExitError) error {
	switch {
	case len(e.Prefix) > 0 && err.Code == 127:
		return fmt.Errorf("%w: %w", notFound(err.Program, exec.ErrNotFound), err)
	case !e.Shell || err.Code != 255:
		return err
	}
	err.Program = e.Prefix[0]
	kind := live.ErrUnreachable
	if s := strings.ToLower(err.Said); strings.Contains(s, "permission denied") ||
		strings.Contains(s, "host key verification failed") {
		kind = live.ErrDenied
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// quoted returns a line that a shell reads as these words.
func quoted(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString("'" + strings.ReplaceAll(w, "'", `'\''`) + "'")
	}
	return b.String()
}

func notFound(program string, err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		want := "the client commands of Slurm"
		if program == "ssh" {
			want = "it"
		}
		return fmt.Errorf("there is no program %s; want %s in $PATH: %w", program, want, err)
	}
	return err
}

// bounded reads at most left bytes.
type bounded struct {
	r       io.Reader
	left    int64
	program string
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("%w: %s prints more than is read", live.ErrUnsupported, b.program)
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// lines cuts what is written into lines, and keeps the first few KiB.
type lines struct {
	each    func(line string) bool
	stop    func()
	stopped bool
	text    strings.Builder
	part    []byte
}

func (l *lines) Write(p []byte) (int, error) {
	for _, c := range p {
		if c == '\n' || len(l.part) > 1<<16 {
			l.flush()
		} else {
			l.part = append(l.part, c)
		}
	}
	return len(p), nil
}

func (l *lines) flush() {
	line := strings.TrimSpace(string(l.part))
	l.part = l.part[:0]
	if line == "" || l.stopped {
		return
	}
	if l.each != nil && !l.each(line) {
		l.stopped = true
		l.stop()
	}
	if l.text.Len() < 1<<11 {
		if l.text.Len() > 0 {
			l.text.WriteString("; ")
		}
		l.text.WriteString(line)
	}
}
