package benchmark

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"

	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/internal/safefile"
	"clustergym/lab/arena"
)

// program returns how a program plays a task: each window once. That it has begun is written down before its first step
// counts, so that a play that ends early and is begun again can be seen; sealed windows are not begun again at all.
func (g *playing) program(t *Task) (*arena.External, error) {
	n, err := g.tries(t)
	if err != nil {
		return nil, err
	}
	if n > 0 && g.opt.Secret != nil {
		return nil,
			fault.Mistakef(
				"task %s: a program has begun its sealed windows in %s and did not finish them, and they are played once", t.Name,
				g.opt.Dir)
	}
	if n > 0 {
		g.say("%s: a program has begun its windows here before, so that this is try %d; a row has one", t.Name, n+1)
	}
	x := *g.policy.External
	x.Once = true
	x.Begun = func() error { return safefile.Write(g.triesFile(t), []byte(strconv.Itoa(n+1))) }
	return &x, nil
}

func (g *playing) triesFile(t *Task) string {
	return filepath.Join(g.opt.Dir, partsDir, t.Name, "tries")
}

// tries returns how often a program has begun to play a task.
func (g *playing) tries(t *Task) (int, error) {
	b, err := ordinary.Read(g.triesFile(t), ordinary.Settings)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, &fault.Mistake{Err: err}
	}
	n, err := strconv.Atoi(string(b))
	if err != nil || n < 1 {
		return 0, fault.Mistakef("%s is no number of tries", g.triesFile(t))
	}
	return n, nil
}
