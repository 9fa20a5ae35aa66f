package envs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"clustergym/bridge/server"
	"clustergym/bridge/wire"
	"clustergym/env/jobselect"
	"clustergym/internal/fault"
)

func TestTheFactoryListsWhatItMakes(t *testing.T) {
	f := NewFactory(registry(t, nil))
	var ids []string
	for _, l := range f.List() {
		ids = append(ids, l.ID)
		m, err := f.Make(t.Context(), l.ID, nil, 2)
		if err != nil {
			t.Fatal(err)
		}
		listed := m.SHA
		if Find(l.ID).Simulated() {
			listed = "" // the jobs are not loaded for a list
		}
		if len(m.Envs) != 2 || l.SHA != listed || len(m.SHA) != 64 ||
			fmt.Sprintf("%+v", m.Envs[1].Spec()) != fmt.Sprintf("%+v", l.Spec) {
			t.Errorf("%s: %d environments of sha %q, listed with %q", l.ID, len(m.Envs), m.SHA, l.SHA)
		}
		if err := closeAll(m); err != nil {
			t.Error(err)
		}
	}
	if len(ids) != len(IDs()) || !slices.IsSorted(ids) || !slices.Contains(ids, jobselect.V1) {
		t.Errorf("ids %v", ids)
	}
	var e *wire.Error
	if m, err := f.Make(t.Context(), "x", nil, 1); m != nil || !errors.As(err, &e) || e.Code != wire.UnknownEnv {
		t.Errorf("an unknown id: %v, %v", m, err)
	}
}

func TestTokenFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const secret, other, last = "s3cret-of-players", "what-others-have", "the-last-in-line"
	put("# who may come in\n\nenv  " + secret + "\r\n\tread " + other + "\n  # more\nadmin " + secret + "\nenv " + last)
	got, warning, err := ReadTokens(path)
	want := []server.Token{{Role: server.RoleEnv, Secret: secret}, {Role: server.RoleRead, Secret: other},
		{Role: server.RoleAdmin, Secret: secret}, {Role: server.RoleEnv, Secret: last}}
	if err != nil || warning != "" || !slices.Equal(got, want) {
		t.Errorf("got %v, %q, %v; want %v", got, warning, err, want)
	}
	for text, wants := range map[string][]string{
		"env s3cret-of-players\nroot s3cret\n\nenv\n": {":2: got another first word, want the role read, env or admin",
			":4: got 1 word, want a role and a token"},
		"env s3cret more\n":                {":1: got 3 words"},
		"s3cret\n":                         {":1: got 1 word"},
		"env s3crét\n":                     {":1: the token has a character"},
		"read " + other + "\nenv s3cret\n": {":2: the token has 6 characters, want at least 16"},
		"env s3cret-of-15-ch\n":            {":1: the token has 15 characters"},
		"# nobody\n":                       {"there is no token in it"},
		"":                                 {"there is no token in it"},
		strings.Repeat("s3cret\n", 1000):   {":10: got 1 word"},
		strings.Repeat("s3cret", 1<<18):    {"too large for a token file"},
		strings.Repeat("#\n", 1<<20):       {"too large for a token file"},
		"\x00\x01\x02\n":                   {":1: got 1 word"},
	} {
		put(text)
		_, _, err := ReadTokens(path)
		var input *fault.Mistake
		if !errors.As(err, &input) {
			t.Errorf("%.20q: %v, want a *fault.Mistake", text, err)
		}
		for _, want := range append(wants, path) {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%.20q: %v, want %q in it", text, err, want)
			}
		}
		if err != nil && (strings.Contains(err.Error(), "s3cr") || strings.Count(err.Error(), "\n") > 9) {
			t.Errorf("%.20q: %v shows a token, or all faults of many", text, err)
		}
	}
	_, _, err = ReadTokens(filepath.Join(path, "nowhere"))
	refused(t, "no file", err, "token file", "nowhere")
	_, _, err = ReadTokens(filepath.Dir(path))
	refused(t, "a folder", err, filepath.Dir(path))
}

func TestTokenFilesAreForFewEyes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such modes here")
	}
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte("env s3cret-of-players\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]struct{ warning, err string }{
		0o400: {}, 0o600: {}, 0o640: {}, 0o440: {},
		0o644: {warning: "may read it (mode 0644)"}, 0o604: {warning: "may read it"},
		0o660: {warning: "its group may write it (mode 0660)"},
		0o666: {err: "everybody on this machine may write it (mode 0666)"}, 0o602: {err: "may write it"},
	} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		tokens, warning, err := ReadTokens(path)
		if want.err != "" {
			refused(t, mode.String(), err, path, want.err)
			continue
		}
		if err != nil || len(tokens) != 1 || (warning == "") != (want.warning == "") ||
			!strings.Contains(warning, want.warning) {
			t.Errorf("%v: %d tokens, %q, %v", mode, len(tokens), warning, err)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("env s3cret-of-players\n"); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if runtime.GOOS == "linux" {
		if tokens, warning, err := ReadTokens(fmt.Sprintf("/dev/fd/%d", r.Fd())); err != nil || warning != "" ||
			len(tokens) != 1 {
			t.Errorf("a pipe: %d tokens, %q, %v", len(tokens), warning, err)
		}
	}
}
