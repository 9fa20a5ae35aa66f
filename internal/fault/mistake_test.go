package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

func TestTextShowsKeysAsTheCallerDoes(t *testing.T) {
	flag := func(k Key) string { return "--" + string(k) }
	inner := Mistakef("%s: got %d, want 1 or more", Key("slots"), 0)
	for _, c := range []struct {
		err         error
		plain, text string
	}{
		{inner, "slots: got 0, want 1 or more", "--slots: got 0, want 1 or more"},
		{Mistakef("no key at all: %d %%", 3), "no key at all: 3 %", "no key at all: 3 %"},
		{fmt.Errorf("worker w: %w", inner), "worker w: slots: got 0, want 1 or more",
			"worker w: --slots: got 0, want 1 or more"},
		{Mistakef("%s: %w", Key("log"), fs.ErrNotExist), "log: file does not exist", "--log: file does not exist"},
		{Mistakef("use %s with %s: %w", Key("tls-ca"), Key("queue"), inner),
			"use tls-ca with queue: slots: got 0, want 1 or more", "use --tls-ca with --queue: --slots: got 0, want 1 or more"},
		{errors.Join(inner, Mistakef("%s: nothing", Key("job"))), "slots: got 0, want 1 or more\njob: nothing",
			"--slots: got 0, want 1 or more\n--job: nothing"},
		{New("agent.gamma", 2, "less"), "agent.gamma: got 2, want less", "agent.gamma: got 2, want less"},
	} {
		if got := c.err.Error(); got != c.plain {
			t.Errorf("got %q, want %q", got, c.plain)
		}
		if got := Text(c.err, flag); got != c.text {
			t.Errorf("as flags: got %q, want %q", got, c.text)
		}
	}
	if !errors.Is(Mistakef("%s: %w", Key("log"), fs.ErrNotExist), fs.ErrNotExist) {
		t.Error("a wrapped error is lost")
	}
	if !IsMistake(fmt.Errorf("x: %w", inner)) || IsMistake(fs.ErrNotExist) {
		t.Error("mistakes are not found")
	}
}
