package tune

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"

	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/internal/safefile"
	"clustergym/internal/statistic"
	"clustergym/simulator/policyname"
)

// stateFile says how far the search of a folder is.
const stateFile = "search.json"

// saved is what stateFile holds. Config, Settings and Origin, which has hashes of the files that were read, say what
// was searched; generations may be added to it.
type saved struct {
	Config   string            `json:"config"`
	Policy   string            `json:"policy,omitempty"` // Options.Policy
	Settings Settings          `json:"settings"`
	Origin   map[string]string `json:"origin"`
	Point    *point            `json:"point"`
}

// of reports whether p has n weights.
func (p *point) of(n int) bool { return len(p.Mean) == n && len(p.Deviation) == n && len(p.Best) == n }

// identity returns what must be equal for a search to go on.
func (t *tuner) identity() (saved, error) {
	text, err := configs.Encode(t.cfg)
	s := saved{Config: string(text), Policy: t.opt.Policy, Settings: t.opt.Settings, Origin: t.scenario.Origin()}
	s.Settings.Generations = 0
	if t.cfg.Streamed() {
		s.Settings.Windows = 0 // and none are played
	}
	return s, err
}

// resume returns the state of the folder, nil if it has none.
func (t *tuner) resume() (*point, error) {
	if t.opt.Dir == "" {
		return nil, nil
	}
	name := filepath.Join(t.opt.Dir, stateFile)
	b, err := ordinary.Read(name, ordinary.Document)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var s saved
	if err := json.Unmarshal(b, &s); err != nil || s.Point == nil ||
		s.Policy == t.opt.Policy && !s.Point.of(len(familyOf(t.policy).names)) {
		return nil,
			fault.Mistakef("%s: it is damaged, so the search cannot go on; remove it to begin anew, or name another folder",
				name)
	}
	want, err := t.identity()
	if err != nil {
		return nil, err
	}
	switch {
	case s.Policy != want.Policy:
		return nil,
			fault.Mistakef("%s: the folder holds a search for another policy; name another folder, or remove it", name)
	case s.Config != want.Config:
		return nil,
			fault.Mistakef("%s: the folder holds a search with another configuration; name another folder, or remove it", name)
	case !reflect.DeepEqual(s.Settings, want.Settings):
		return nil,
			fault.Mistakef(
				"%s: the folder holds a search with population %d, %s, every %d, seed %d and only %v; give the same, or "+
					"name another folder",
				name, s.Settings.Population, t.each(&s.Settings), s.Settings.Every, s.Settings.Seed, s.Settings.Only)
	case s.Point.Generation > t.opt.Generations:
		return nil,
			fault.Mistakef("%s: the search in this folder has had %d generations; want %s %d or more, or another folder", name,
				s.Point.Generation, fault.Key("generations"), s.Point.Generation)
	}
	return s.Point, t.scenario.Same(s.Origin, t.opt.Dir)
}

// each says what a generation of a search with some settings plays.
func (t *tuner) each(s *Settings) string {
	if t.cfg.Streamed() {
		return fmt.Sprintf("draws %d", s.draws())
	}
	return fmt.Sprintf("windows %d", s.Windows)
}

// save writes the state and the weights so far.
func (t *tuner) save(p *point) error {
	if t.opt.Dir == "" {
		return nil
	}
	s, err := t.identity()
	if err != nil {
		return err
	}
	s.Point = p
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	if err := t.write(p, nil); err != nil {
		return err
	}
	if err := safefile.Write(filepath.Join(t.opt.Dir, stateFile), append(b, '\n')); err != nil || t.opt.Saved == nil {
		return err
	}
	return t.opt.Saved()
}

// write writes the weights so far, and how their check went, nil before it.
func (t *tuner) write(p *point, check *statistic.Replicated) error {
	if t.opt.Dir == "" {
		return nil
	}
	s, err := t.identity()
	if err != nil {
		return err
	}
	w := of(t.policy, p.Best)
	text := []byte(w.Written() + "\n")
	if w.Written() == "" {
		if text, err = configs.Encode(w.given()); err != nil {
			return err
		}
	}
	played := fmt.Sprintf("%d windows", t.opt.Windows)
	if t.cfg.Streamed() {
		played = fmt.Sprintf("%d draws", t.opt.draws())
	}
	head := fmt.Sprintf("# Weights of %s, of gymctl tune after %d generations (%d weights, %s, seed %d).\n"+
		"# Workload: %s; cluster: %s; estimates: %s; configuration: sha256 %.6x.\n"+
		"# Mean JCT on %s against %s: %+.1f %%, of the weights at the beginning %+.1f %%.\n",
		policyname.Short(t.policy), p.Generation, t.opt.Population, played, t.opt.Seed,
		t.scenario.Trace, t.scenario.Cluster().Name, t.cfg.Estimates(), sha256.Sum256([]byte(s.Config)),
		t.ground.head(), w.Reference(), 100*(p.Ratio-1), 100*(p.Start-1))
	if check != nil {
		head += fmt.Sprintf("# Mean JCT on %d validation units against %s: %s, verdict: %s.\n", check.Units, check.B,
			Change(check), check.Verdict)
	}
	return safefile.Write(filepath.Join(t.opt.Dir, w.File()), append([]byte(head), text...))
}

// Change returns the difference of a comparison in words, with its interval if there is one.
func Change(c *statistic.Replicated) string {
	s := fmt.Sprintf("%+.1f %%", float64(c.Difference))
	if c.CI95.Known() {
		s += fmt.Sprintf(" [%+.1f, %+.1f]", c.CI95[0], c.CI95[1])
	}
	return s
}
