package benchmark

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/configs"
)

// The commitment is SHA-256 of the 32 bytes of the salt and the 32 of the seed: any program can check it, such as
// printf '%s' "$SALT$SEED" | xxd -r -p | sha256sum.
func TestCommitmentIsTheHashOfSaltAndSeed(t *testing.T) {
	s, err := parseSecret(strings.Repeat("01", 32), strings.Repeat("02", 32))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Commitment(), "f818afd37a6dc3bc92fb44731011277006db4efa6e9023cd7468c02335d22a4d"; got != want {
		t.Errorf("commitment %s, want %s", got, want)
	}
	a, b := Draw(), Draw()
	if a == b || a.Commitment() == b.Commitment() {
		t.Error("two draws are equal")
	}
}

func TestSecretsAreKeptAndChecked(t *testing.T) {
	name := filepath.Join(t.TempDir(), "secret")
	s := Draw()
	if err := s.Write(name); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadSecret(name); err != nil || got != s {
		t.Errorf("read again %v, %v", got, err)
	}
	if i, err := os.Stat(name); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("%v, mode %v: others can read it", err, i.Mode())
	}
	other := Draw()
	if err := other.Write(name); err == nil || !strings.Contains(err.Error(), "never replaced") {
		t.Errorf("a secret was replaced: %v", err)
	}
	v := Numbered(1)
	if err := v.Check(&s); err == nil || !strings.Contains(err.Error(), "is not that of version 1") {
		t.Errorf("a drawn secret is taken for the version's: %v", err)
	}
	if _, err := v.Sealed(""); v.State == Open && (err == nil || !strings.Contains(err.Error(), "is open")) {
		t.Errorf("sealed windows of an open version without a secret: %v", err)
	}
	for _, text := range []string{"", "salt: 1\nseed: 2",
		"seed: " + strings.Repeat("0", 64) + "\nsalt: " + strings.Repeat("0", 64)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadSecret(name); err == nil || !strings.Contains(err.Error(), "want two lines") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A version that closes gets salt and seed, and its commitment proves that they are those of its beginning.
func TestAClosedVersionRevealsItsSeed(t *testing.T) {
	text, err := files.ReadFile("v1.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := Draw()
	open := string(text)
	v := Numbered(1)
	closed := strings.Replace(open, "state: open\n", "state: closed\n", 1)
	closed = strings.Replace(closed, "commitment: "+v.Commitment+"\n", "commitment: "+s.Commitment()+"\n"+s.Text(), 1)
	w := &Version{}
	if err := configs.DecodeBytes("v1.yaml", []byte(closed), w); err != nil {
		t.Fatal(err)
	}
	if got, err := w.Sealed(""); err != nil || got != s {
		t.Errorf("the sealed windows of a closed version: %v", err)
	}
	wrong := Draw()
	if err := configs.DecodeBytes("v1.yaml", []byte(strings.Replace(closed, s.Text(), wrong.Text(), 1)),
		&Version{}); err == nil || !strings.Contains(err.Error(), "seed") {
		t.Errorf("another seed than that of the commitment is taken: %v", err)
	}
}

// Sealed windows differ by task and from the development windows, and are always the same for a secret.
func TestSealedSeeds(t *testing.T) {
	s, err := parseSecret(strings.Repeat("01", 32), strings.Repeat("02", 32))
	if err != nil {
		t.Fatal(err)
	}
	v := Numbered(1)
	seen := map[uint64]string{}
	for i := range v.Tasks {
		task := &v.Tasks[i]
		cfg, err := task.Config()
		if err != nil {
			t.Fatal(err)
		}
		was := cfg
		s.seal(&cfg, task)
		if cfg.Simulated() && (cfg.Trace.Seed == was.Trace.Seed || seen[cfg.Trace.Seed] != "") {
			t.Errorf("%s: trace.seed %d is that of %q or of the development windows", task.Name, cfg.Trace.Seed,
				seen[cfg.Trace.Seed])
		}
		if cfg.Eval.Seed == was.Eval.Seed || seen[cfg.Eval.Seed] != "" {
			t.Errorf("%s: eval.seed %d is that of %q or of the development windows", task.Name, cfg.Eval.Seed,
				seen[cfg.Eval.Seed])
		}
		seen[cfg.Eval.Seed] = task.Name
		if cfg.Simulated() {
			seen[cfg.Trace.Seed] = task.Name
		}
		again := was
		if s.seal(&again, task); again.Eval.Seed != cfg.Eval.Seed || again.Trace.Seed != cfg.Trace.Seed {
			t.Errorf("%s: sealed twice, it differs", task.Name)
		}
		if err := cfg.Validate(); err != nil {
			t.Errorf("%s: %v", task.Name, err)
		}
	}
}
