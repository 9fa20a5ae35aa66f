package benchmark

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/lab/config"
)

// Secret decides the sealed windows of a version. Both numbers have 256 bits: nobody finds the seed by trying which one
// gives the commitment.
type Secret struct{ Salt, Seed [32]byte }

// Draw draws a secret from the system's generator.
func Draw() Secret {
	var s Secret
	_, _ = rand.Read(s.Salt[:]) // it ends the program rather than fail
	_, _ = rand.Read(s.Seed[:])
	return s
}

// Commitment returns the SHA-256 of salt and seed in hexadecimal digits. It binds to the seed, and tells nothing of it.
func (s *Secret) Commitment() string {
	h := sha256.New()
	h.Write(s.Salt[:])
	h.Write(s.Seed[:])
	return hex.EncodeToString(h.Sum(nil))
}

// Text returns the secret as lines of the version's file.
func (s *Secret) Text() string { return fmt.Sprintf("salt: %x\nseed: %x\n", s.Salt, s.Seed) }

// Write writes a new file that only its owner can read. A file that is there already stays as it is.
func (s *Secret) Write(name string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fault.Mistakef("%s is there already: a secret is never replaced", name)
	}
	if err != nil {
		return &fault.Mistake{Err: err}
	}
	_, err = f.WriteString(s.Text())
	return errors.Join(err, f.Sync(), f.Close())
}

// ReadSecret reads a file that Write wrote.
func ReadSecret(name string) (Secret, error) {
	var s Secret
	b, err := ordinary.Read(name, 4096)
	if err != nil {
		return s, fault.Mistakef("secret %s: %v", name, ordinary.Reason(err))
	}
	salt, seed, ok := strings.Cut(strings.TrimSpace(string(b)), "\n")
	salt, ok1 := strings.CutPrefix(salt, "salt: ")
	seed, ok2 := strings.CutPrefix(seed, "seed: ")
	if ok && ok1 && ok2 {
		s, err = parseSecret(salt, seed)
	}
	if !ok || !ok1 || !ok2 || err != nil {
		return s,
			fault.Mistakef(
				"secret %s: want two lines, salt: and seed: with 64 hexadecimal digits each, as gymctl benchmark seal writes them",
				name)
	}
	return s, nil
}

func parseSecret(salt, seed string) (s Secret, err error) {
	if !hexForm.MatchString(salt) || !hexForm.MatchString(seed) {
		return s, errors.New("want 64 hexadecimal digits")
	}
	_, err = hex.Decode(s.Salt[:], []byte(salt))
	if err == nil {
		_, err = hex.Decode(s.Seed[:], []byte(seed))
	}
	return s, err
}

// revealed returns the secret that a closed version's file has.
func (v *Version) revealed() (Secret, error) { return parseSecret(v.Salt, v.Seed) }

// Check returns a *fault.Mistake unless s is what the version committed to.
func (v *Version) Check(s *Secret) error {
	if got := s.Commitment(); got != v.Commitment {
		return fault.Mistakef("the secret is not that of version %d: its hash is %.12s…, and the version's commitment %.12s…",
			v.Version, got, v.Commitment)
	}
	return nil
}

// Sealed returns the secret of the version: that in its file once it is closed, else that of the file called name.
func (v *Version) Sealed(name string) (Secret, error) {
	if name == "" {
		if v.State != Closed {
			return Secret{}, fault.Mistakef("version %d is open, and its sealed windows are secret until it closes; want %s "+
				"FILE, or split %s", v.Version, fault.Key("secret"), Development)
		}
		return v.revealed()
	}
	s, err := ReadSecret(name)
	if err == nil {
		err = v.Check(&s)
	}
	return s, err
}

// seal replaces the seeds of cfg, the run of t, by those of its sealed windows or draws.
func (s *Secret) seal(cfg *config.Config, t *Task) {
	at := func(what string) uint64 {
		h := sha256.New()
		h.Write(s.Seed[:])
		h.Write([]byte(t.Name + "\n" + what))
		return binary.BigEndian.Uint64(h.Sum(nil)) >> 1 // fits a signed number, for readers of YAML
	}
	switch {
	case t.Track == Generated: // of the same generator at the same rate, which follow from the workload to train on
		cfg.Eval.Streams.Draws = t.sealed
	case cfg.Simulated():
		cfg.Trace.Seed = at("trace")
	}
	cfg.Eval.Seed = at("episodes")
}
