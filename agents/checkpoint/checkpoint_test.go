package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"clustergym/agents"
)

// blob is a part of plain bytes. It remembers whether it was read.
type blob struct {
	name string
	data []byte
	read bool
	fail error // of WriteTo
}

func (b *blob) Name() string { return b.name }

func (b *blob) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(b.data)
	if err == nil {
		err = b.fail
	}
	return int64(n), err
}

func (b *blob) ReadFrom(r io.Reader) (int64, error) {
	data, err := io.ReadAll(r)
	if err == nil && bytes.HasPrefix(data, []byte("refuse")) {
		err = errors.New("refused")
	}
	if err == nil {
		b.data, b.read = data, true
	}
	return int64(len(data)), err
}

var _ agents.Part = (*blob)(nil)

// parts are a small, an empty and a large one, their content marked by version.
func parts(version string) []agents.Part {
	return []agents.Part{
		&blob{name: "weights.safetensors", data: []byte("weights " + version)},
		&blob{name: "empty.bin"},
		&blob{name: "replay.bin", data: bytes.Repeat([]byte(version), 100_000)},
	}
}

func places() []agents.Part {
	return []agents.Part{&blob{name: "weights.safetensors"}, &blob{name: "empty.bin"}, &blob{name: "replay.bin"}}
}

func contents(ps []agents.Part) []string {
	var out []string
	for _, p := range ps {
		out = append(out, string(p.(*blob).data))
	}
	return out
}

func mustSave(t *testing.T, dir, version string, step int64) {
	t.Helper()
	if err := Save(dir, Meta{Step: step, Env: "Test-v1", Agent: "ppo", Seed: 1<<64 - 1}, parts(version)...); err != nil {
		t.Fatal(err)
	}
}

func TestLoadGivesBackWhatWasSaved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs", "one", "50")
	mustSave(t, dir, "a", 50)
	got := places()
	m, err := Load(dir, got...)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Meta{Format: Format, Step: 50, Env: "Test-v1", Agent: "ppo", Seed: 1<<64 - 1}); !reflect.DeepEqual(m,
		want) {
		t.Errorf("meta is %+v, want %+v", m, want)
	}
	if !reflect.DeepEqual(contents(got), contents(parts("a"))) {
		t.Error("the parts differ")
	}

	// Saved again over itself.
	mustSave(t, dir, "b", 50)
	if _, err := Load(dir, got...); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(contents(got), contents(parts("b"))) {
		t.Error("the parts are not the second save's")
	}
	if left := names(t, filepath.Dir(dir)); len(left) != 1 {
		t.Errorf("beside the checkpoint lies %v", left)
	}

	r, _, err := Open(dir, "weights.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil || string(data) != "weights b" {
		t.Errorf("Open: %q, %v", data, err)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// For every kind of damage the error is one sentence that names the file, and no part has been touched.
func TestDamageIsNamedAndChangesNothing(t *testing.T) {
	change := func(name string, f func([]byte) []byte) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, name)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f(data), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(name string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	flip := func(at int) func([]byte) []byte {
		return func(b []byte) []byte { b[at] ^= 1; return b }
	}
	half := func(b []byte) []byte { return b[:len(b)/2] }
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		file  string
	}{
		"no manifest":       {remove(ManifestName), ManifestName},
		"half a manifest":   {change(ManifestName, half), ManifestName},
		"two manifests":     {change(ManifestName, func(b []byte) []byte { return append(b, b...) }), ManifestName},
		"a brace too many":  {change(ManifestName, func(b []byte) []byte { return append(b, '}') }), ManifestName},
		"empty manifest":    {change(ManifestName, func([]byte) []byte { return nil }), ManifestName},
		"a bit of the last": {change("replay.bin", flip(99_999)), "replay.bin"},
		"half of the last":  {change("replay.bin", half), "replay.bin"},
		"longer first": {change("weights.safetensors", func(b []byte) []byte { return append(b, 0) }),
			"weights.safetensors"},
		"part removed": {remove("empty.bin"), "empty.bin"},
		"part is a folder": {func(t *testing.T, dir string) {
			remove("empty.bin")(t, dir)
			_ = os.Mkdir(filepath.Join(dir, "empty.bin"), 0o755)
		}, "empty.bin"},
		"newer format": {change(ManifestName,
			func(b []byte) []byte { return bytes.Replace(b, []byte(`"format": 1`), []byte(`"format": 2`), 1) }), "format 2"},
		"path in a name": {change(ManifestName,
			func(b []byte) []byte { return bytes.Replace(b, []byte("empty.bin"), []byte("../x"), 1) }), ManifestName},
		"part listed twice": {change(ManifestName,
			func(b []byte) []byte { return bytes.Replace(b, []byte("empty.bin"), []byte("replay.bin"), 1) }), "replay.bin"},
		"enormous manifest": {change(ManifestName, func([]byte) []byte { return bytes.Repeat([]byte(" "), maxManifest+2) }),
			ManifestName},
		"hash of another": {change(ManifestName,
			func(b []byte) []byte { return bytes.Replace(b, []byte(`"sha256": "`), []byte(`"sha256": "0`), 1) }),
			"weights.safetensors"},
		"size not a number": {change(ManifestName,
			func(b []byte) []byte { return bytes.Replace(b, []byte(`"size": 0`), []byte(`"size": "0"`), 1) }), ManifestName},
		"size of the future": {change(ManifestName, func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"size": 0`), []byte(`"size": 9000000000000000`), 1)
		}), "empty.bin"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "7")
			mustSave(t, dir, "a", 7)
			c.spoil(t, dir)
			got := places()
			_, err := Load(dir, got...)
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.file) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one sentence of ErrDamaged that names %s", err, c.file)
			}
			for _, p := range got {
				if p.(*blob).read {
					t.Errorf("%s was read", p.Name())
				}
			}
			if _, err := Verify(dir); !errors.Is(err, ErrDamaged) {
				t.Errorf("Verify: got %v, want ErrDamaged", err)
			}
		})
	}
}

func TestPartsMustBeThoseAskedFor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "7")
	mustSave(t, dir, "a", 7)
	all := places()
	for name, ps := range map[string][]agents.Part{
		"replay.bin": all[:2],
		"more.bin":   append(places(), &blob{name: "more.bin"}),
		"empty.bin":  {all[0], all[1], all[1], all[2]},
	} {
		if _, err := Load(dir, ps...); !errors.Is(err, ErrParts) || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want ErrParts that names %s", err, name)
		}
		for _, p := range ps {
			if p.(*blob).read {
				t.Errorf("%s was read", p.Name())
			}
		}
	}
	if _, _, err := Open(dir, "more.bin"); !errors.Is(err, ErrParts) {
		t.Errorf("Open: got %v, want ErrParts", err)
	}
	if _, err := Load(filepath.Join(dir, "nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: got %v, want os.ErrNotExist", err)
	}
}

func TestPartThatRefusesIsNamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "7")
	if err := Save(dir, Meta{}, &blob{name: "picky.bin", data: []byte("refuse me")}); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir, &blob{name: "picky.bin"}); err == nil || !strings.Contains(err.Error(), "picky.bin") {
		t.Errorf("got %v, want an error that names picky.bin", err)
	}
}

func TestSaveRefusesBadNames(t *testing.T) {
	root := t.TempDir()
	for _, ps := range [][]agents.Part{
		{&blob{name: ""}}, {&blob{name: ManifestName}}, {&blob{name: "../x"}}, {&blob{name: ".hidden"}},
		{&blob{name: "a"}, &blob{name: "a"}},
	} {
		if err := Save(filepath.Join(root, "1"), Meta{}, ps...); err == nil {
			t.Errorf("%q: no error", ps[0].Name())
		}
	}
	if err := Save(filepath.Join(root, ".tmp-1"), Meta{}); err == nil {
		t.Error("a hidden directory: no error")
	}
	if left := names(t, root); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A part that fails to write leaves the old checkpoint and no temporary directory.
func TestFailedSaveLeavesTheOld(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "7")
	mustSave(t, dir, "a", 7)
	full := errors.New("disk full")
	err := Save(dir, Meta{}, &blob{name: "x.bin", data: []byte("x")}, &blob{name: "y.bin", data: []byte("y"), fail: full})
	if !errors.Is(err, full) || !strings.Contains(err.Error(), "y.bin") {
		t.Errorf("got %v, want the part's error with its name", err)
	}
	if left := names(t, root); !reflect.DeepEqual(left, []string{"7"}) {
		t.Errorf("there lies %v, want the old checkpoint alone", left)
	}
	if _, err := Load(dir, places()...); err != nil {
		t.Error(err)
	}
}

func TestListLatestPrune(t *testing.T) {
	root := filepath.Join(t.TempDir(), "checkpoints")
	if steps, err := List(root); err != nil || len(steps) != 0 {
		t.Errorf("nothing there yet: %v, %v", steps, err)
	}
	if _, err := Latest(root); !errors.Is(err, ErrNone) {
		t.Errorf("got %v, want ErrNone", err)
	}
	for _, step := range []int64{1000, 200, 30, 4000, 50000} { // not in the order of names
		mustSave(t, Dir(root, step), fmt.Sprint(step), step)
	}
	for _, other := range []string{"007", "best", "-5", "60000"} { // 60000 has no manifest
		if err := os.Mkdir(filepath.Join(root, other), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	steps, err := List(root)
	if want := []int64{30, 200, 1000, 4000, 50000}; err != nil || !reflect.DeepEqual(steps, want) {
		t.Errorf("got %v, %v, want %v", steps, err, want)
	}
	if dir, err := Latest(root); err != nil || dir != Dir(root, 50000) {
		t.Errorf("latest is %s, %v", dir, err)
	}
	removed, err := Prune(root, 2, Dir(root, 200), "12345")
	if want := []int64{30, 1000}; err != nil || !reflect.DeepEqual(removed, want) {
		t.Errorf("pruned %v, %v, want %v", removed, err, want)
	}
	steps, err = List(root)
	if want := []int64{200, 4000, 50000}; err != nil || !reflect.DeepEqual(steps, want) {
		t.Errorf("got %v, %v, want %v", steps, err, want)
	}
	if _, err := Prune(root, -1); err == nil {
		t.Error("keep -1: no error")
	}
	for _, name := range names(t, root) {
		if strings.HasPrefix(name, ".") {
			t.Errorf("%s lies aside", name)
		}
	}
}

func TestMatch(t *testing.T) {
	m := Meta{Env: "JobSelect-v1", Agent: "ppo", Network: "abc"}
	if err := m.Match(Meta{Env: "JobSelect-v1", Agent: "ppo"}); err != nil {
		t.Error(err)
	}
	for _, want := range []Meta{{Env: "GPUPick-v1"}, {Agent: "ddqn"}, {Network: "abd"}} {
		if err := m.Match(want); !errors.Is(err, ErrMismatch) {
			t.Errorf("%+v: got %v, want ErrMismatch", want, err)
		}
	}
}

// Equal state gives equal bytes, manifest included.
func TestSavesAreReproducible(t *testing.T) {
	root := t.TempDir()
	var got [2][]byte
	for i := range got {
		dir := Dir(root, int64(i))
		m := Meta{Extra: map[string]string{"b": "2", "a": "1", "c": "3"}}
		if err := Save(dir, m, parts("a")...); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, ManifestName))
		if err != nil {
			t.Fatal(err)
		}
		got[i] = data
	}
	if !bytes.Equal(got[0], got[1]) {
		t.Error("two saves of one state have different manifests")
	}
}
