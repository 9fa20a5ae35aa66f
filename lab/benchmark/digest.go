package benchmark

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"clustergym/agents/checkpoint"
	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/rundir"
)

// Digest returns the hash of the task: of its development episodes, jobs included, and of what its score counts. cfg is
// its configuration and w its scenario.
func (t *Task) Digest(w *arena.Scenario, cfg *config.Config) (string, error) {
	episodes, err := w.TestSHA(cfg)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s %d\n%s\n%s\n%s\n%s\n%d\n%s\n", Name, t.version, t.Name, metric(cfg).Key, Rung(cfg), episodes,
		cfg.Eval.Seeds, strings.Join(t.Rules, ","))
	if t.Track != "" {
		fmt.Fprintf(h, "%s %d\n", t.Track, t.Blocks)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// check returns an error if this program's task is not that of the version.
func (t *Task) check(w *arena.Scenario, cfg *config.Config) error {
	got, err := t.Digest(w, cfg)
	if err == nil && got != t.Hash {
		err = fmt.Errorf(
			"task %s: this program plays other windows than version %d of the benchmark: hash %.12s…, want %.12s…; use the "+
				"program that belongs to it", t.Name, t.version, got, t.Hash)
	}
	return err
}

// hashJSON returns the SHA-256 of v as JSON, whose keys are in a fixed order.
func hashJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("benchmark: " + err.Error()) // plain structs of texts and finite numbers
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// hashCheckpoint returns what a checkpoint is, or that of a run directory. Its hash is of everything that decides how
// it plays: the configuration of its run and its weights. Names of folders are not in it.
func hashCheckpoint(dir string) (fingerprint, error) {
	ckpt, run, err := rundir.CheckpointDir(dir)
	if err != nil {
		return fingerprint{}, err
	}
	m, err := checkpoint.Verify(ckpt)
	if err != nil {
		return fingerprint{}, &fault.Mistake{Err: err}
	}
	conf, err := hashFile(filepath.Join(run, rundir.ConfigFile))
	if err != nil {
		return fingerprint{}, err
	}
	weights := ""
	for _, p := range m.Parts {
		if p.Name == "weights.safetensors" {
			weights = p.SHA256
		}
	}
	if weights == "" {
		return fingerprint{}, fault.Mistakef("%s holds no weights", ckpt)
	}
	return fingerprint{hashJSON([]string{"checkpoint", conf, weights}), m.Meta.Seed, m.Meta.Step}, nil
}

// hashModel returns what a model is: the hash of its file.
func hashModel(name string) (fingerprint, error) {
	h, err := hashFile(name)
	return fingerprint{hash: h}, err
}

// hashFile returns the SHA-256 of a file.
func hashFile(name string) (string, error) {
	h, err := ordinary.SHA256(name)
	if err != nil {
		return "", &fault.Mistake{Err: err}
	}
	return h, nil
}

// text returns a configuration as YAML.
func text(cfg *config.Config) string {
	b, err := configs.Encode(cfg)
	if err != nil {
		panic("benchmark: " + err.Error()) // a configuration that was decoded before
	}
	return string(b)
}
