//go:build unix

package slurm

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/live"
)

func all(to *string) func(io.Reader) error {
	return func(r io.Reader) error {
		b, err := io.ReadAll(r)
		*to = string(b)
		return err
	}
}

// Variables that filter what squeue shows would make a queue look shorter than it is.
func TestExecSetsTheEnvironment(t *testing.T) {
	t.Setenv("SQUEUE_USERS", "ann")
	t.Setenv("SLURM_TIME_FORMAT", "relative")
	t.Setenv("KEPT", "yes")
	var out string
	e := Exec{Env: []string{"SLURM_CONF=/made/up"}}
	if err := e.Run(t.Context(),
		Call{Args: []string{"sh", "-c", `echo "$SQUEUE_USERS,$SLURM_TIME_FORMAT,$TZ,$KEPT,$SLURM_CONF"`},
			Out: all(&out)}); err != nil || out != ",%s,UTC,yes,/made/up\n" {
		t.Errorf("%q, %v", out, err)
	}
	// nothing of here arrives, as over ssh
	e = Exec{Prefix: []string{"env", "-i", "FAR=away"}, Env: []string{"SLURM_CONF=/made/up"}}
	if err := e.Run(t.Context(), Call{Args: []string{"sh", "-c", `echo $FAR $SLURM_TIME_FORMAT $SLURM_CONF $KEPT`},
		Out: all(&out)}); err != nil || out != "away %s /made/up\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// Over ssh a shell reads the line: the bar in sprio's format must not become a pipe.
func TestExecQuotesForAShell(t *testing.T) {
	var out string
	e := Exec{Prefix: []string{"sh", "-c"}, Shell: true}
	if err := e.Run(t.Context(), Call{Args: []string{"printf", `%s.`, "%i|%S", "it's; $HOME", "TZ"},
		Out: all(&out)}); err != nil || out != "%i|%S.it's; $HOME.TZ." {
		t.Errorf("%q, %v", out, err)
	}
	if err := e.Run(t.Context(), Call{Args: []string{"sh", "-c", "echo $SLURM_TIME_FORMAT"}, Out: all(&out)}); err !=
		nil || out != "%s\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestExecEndsWhatTakesTooLongOrTooMuch(t *testing.T) {
	e := Exec{Timeout: 50 * time.Millisecond}
	sleep := []string{"sh", "-c", "sleep 60"}
	if err := e.Run(t.Context(), Call{Args: sleep}); !errors.Is(err, live.ErrUnreachable) ||
		!strings.Contains(err.Error(), "sh has not answered within 50ms") {
		t.Errorf("%v", err)
	}
	var out string
	if err := e.Run(t.Context(), Call{Args: sleep, Out: all(&out)}); !errors.Is(err, live.ErrUnreachable) {
		t.Errorf("%v", err)
	}
	if err := (Exec{Bound: 1000}).Run(t.Context(),
		Call{Args: []string{"sh", "-c", "while :; do echo more; done"}, Out: all(&out)}); !errors.Is(err,
		live.ErrUnsupported) || len(out) != 1000 {
		t.Errorf("%v after %d bytes", err, len(out))
	}
	ctx, stop := context.WithCancel(t.Context())
	err := Exec{}.Run(ctx, Call{Args: []string{"sh", "-c", "echo begun; sleep 60"}, Out: func(r io.Reader) error {
		_, err := bufio.NewReader(r).ReadString('\n')
		stop()
		return err
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestExecTellsWhatACommandSaid(t *testing.T) {
	err := Exec{}.Run(t.Context(), Call{Args: []string{"sh", "-c", "echo one >&2; echo two >&2; exit 3"}})
	exit, ok := errors.AsType[*ExitError](err)
	if !ok || exit.Code != 3 || exit.Said != "one; two" || err.Error() != "sh: one; two" {
		t.Errorf("%v", err)
	}
	if err := (Exec{}).Run(t.Context(), Call{Args: []string{"no-such-program-of-slurm"}}); !errors.Is(err,
		exec.ErrNotFound) || !strings.Contains(err.Error(), "want the client commands of Slurm") {
		t.Errorf("%v", err)
	}
	var out string
	if err := (Exec{}).Run(t.Context(), Call{Args: []string{"no-such-program-of-slurm"}, Out: all(&out)}); !errors.Is(err,
		exec.ErrNotFound) {
		t.Errorf("%v", err)
	}
	wrong := errors.New("wrong")
	if err := (Exec{}).Run(t.Context(),
		Call{Args: []string{"sh", "-c", "echo x; sleep 60"}, Out: func(io.Reader) error { return wrong }}); !errors.Is(err,
		wrong) {
		t.Errorf("%v", err)
	}
	var said []string
	err = Exec{}.Run(t.Context(),
		Call{Args: []string{"sh"}, In: strings.NewReader("echo a >&2\necho b >&2\nsleep 60\n"),
			Err: func(s string) bool { said = append(said, s); return s != "b" }})
	if err != nil || !slices.Equal(said, []string{"a", "b"}) {
		t.Errorf("%q, %v", said, err)
	}
}

// What ssh says of itself is told apart from what Slurm says.
func TestExecTellsWhatBecameOfSSH(t *testing.T) {
	for _, x := range []struct {
		script string
		is     error
		want   string
	}{
		{"echo 'Permission denied (publickey).' >&2; exit 255", live.ErrDenied, "sh: Permission denied"},
		{"echo 'Host key verification failed.' >&2; exit 255", live.ErrDenied, "Host key"},
		{"echo 'kex_exchange_identification: Connection closed by remote host' >&2; exit 255", live.ErrUnreachable, "kex"},
		{"exit 255", live.ErrUnreachable, "255"},
		{"echo 'env: squeue: No such file or directory' >&2; exit 127", exec.ErrNotFound,
			"want the client commands of Slurm in $PATH"},
	} {
		e := Exec{Prefix: []string{"sh", "-c", x.script}, Shell: true}
		c := New(e, Options{})
		err := c.output(t.Context(), func(r io.Reader) error { _, err := io.ReadAll(r); return err }, "squeue")
		if !errors.Is(err, x.is) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", x.script, err)
		}
	}
}
