package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"clustergym/agents"
	"clustergym/agents/train"
	"clustergym/configs"
	"clustergym/distributed/ranks"
	"clustergym/env/vec"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/nets/kernel"
)

// ranked is what a training in ranks needs beside a training. Rank 0 does what one process would do, and the others
// follow: they own their rows, and give their share of every checkpoint.
type ranked struct {
	shares []agents.Share // the agent and the trainer
	runDir string         // of rank 0
	saved  int64          // step of the last checkpoint that is known to be whole, -1 = none
	given  int64          // step of the last checkpoint that this rank has given its share of
}

// follows reports whether this process is a rank that follows rank 0.
func (t *training) follows() bool { return t.opt.Ranks != nil && t.opt.Ranks.Rank() > 0 }

// outline is what rank 0 tells the others first.
type outline struct {
	Config  string // config.yaml
	Changes []string
	Resume  bool
	RunDir  string
	Kernels string
}

// plan compares this rank's configuration with rank 0's. A rank that resumes takes rank 0's, so that it needs no run
// directory.
func (t *training) plan(cfg *config.Config) error {
	g := t.opt.Ranks
	t.saved, t.given, t.runDir = -1, -1, t.opt.RunDir
	if t.opt.Until > 0 {
		return errors.New("a training in ranks cannot pause")
	}
	if g.Rank() == 0 || !t.opt.Resume {
		if err := inRanks(cfg, g.World()); err != nil {
			return err
		}
		if err := config.UseKernels(cfg.Kernels); err != nil {
			return err
		}
	}
	text, err := configs.Encode(cfg)
	if err != nil {
		return err
	}
	own := outline{string(text), t.opt.Changes, t.opt.Resume, t.opt.RunDir, kernel.Set()}
	b, err := json.Marshal(own)
	if err != nil {
		return err
	}
	if b, err = g.Broadcast(b); err != nil || g.Rank() == 0 {
		return err
	}
	var first outline
	if err := json.Unmarshal(b, &first); err != nil {
		return fmt.Errorf("what rank 0 begins with: %w", err)
	}
	t.runDir = first.RunDir
	if t.opt.Continue {
		t.opt.Resume, own.Resume = first.Resume, first.Resume
	}
	switch {
	case own.Resume != first.Resume:
		return fault.Mistakef("%s: it is given to rank 0 or to this rank alone, want all ranks to resume or none",
			fault.Key("resume"))
	case own.Resume && !slices.Equal(own.Changes, first.Changes):
		return fault.Mistakef("%s: this rank changes %q and rank 0 %q, want the same", fault.Key("set"), own.Changes,
			first.Changes)
	case own.Resume:
		if *cfg, err = config.Decode("rank 0's config.yaml", []byte(first.Config)); err != nil {
			return err
		}
		if err := config.UseKernels(cfg.Kernels); err != nil {
			return err
		}
		own.Kernels = kernel.Set()
	case own.Config != first.Config:
		return fault.Mistakef("this rank has another configuration than rank 0: %s", differing(own.Config, first.Config))
	}
	if own.Kernels != first.Kernels {
		return fault.Mistakef("this rank computes with kernels %s and rank 0 with %s, which differ in last bits: give all "+
			"ranks the same %s", own.Kernels, first.Kernels, fault.Key("kernels"))
	}
	return nil
}

// CheckRanks returns why cfg cannot be trained by so many ranks, before they meet.
func CheckRanks(cfg *config.Config, world int) error {
	if err := inRanks(cfg, world); err != nil {
		return err
	}
	return config.UseKernels(cfg.Kernels)
}

// inRanks returns why cfg cannot be trained in ranks.
func inRanks(cfg *config.Config, world int) error {
	switch {
	case cfg.Agent != "ppo":
		return fault.Mistakef("agent: got %q, want ppo, whose replicas are the ranks", cfg.Agent)
	case cfg.PPO.Replicas != world:
		return fault.Mistakef("ppo.replicas: got %d, want %d, one for each rank", cfg.PPO.Replicas, world)
	case cfg.PPO.PreemptShare > 0:
		return fault.Mistakef(
			"ppo.preempt_share: got %g, want 0 with ranks: each takes its steps at its own pace and none is cut short",
			cfg.PPO.PreemptShare)
	case cfg.Train.Imitate != "":
		return fault.Mistakef(
			"train.imitate: got %q, want \"\" with ranks: the play that is imitated is recorded by one process",
			cfg.Train.Imitate)
	case cfg.Train.Envs%world != 0:
		return fault.Mistakef("train.envs: got %d, want a multiple of the %d ranks", cfg.Train.Envs, world)
	}
	return nil
}

// differing returns the first lines in which two texts differ.
func differing(own, first string) string {
	a, b := strings.Split(own, "\n"), strings.Split(first, "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			theirs := "nothing"
			if i < len(b) {
				theirs = strings.TrimSpace(b[i])
			}
			return fmt.Sprintf("%q here, %q there", strings.TrimSpace(a[i]), theirs)
		}
	}
	return fmt.Sprintf("nothing here, %q there", strings.TrimSpace(b[len(a)]))
}

// agree compares what ranks have read: a trace file of the same name can be another one elsewhere.
func (t *training) agree() error {
	g := t.opt.Ranks
	b, err := json.Marshal(t.arena.Origin())
	if err != nil {
		return err
	}
	all, err := g.Collect(b)
	if err != nil {
		return err
	}
	verdict := ""
	for k, theirs := range all {
		if !bytes.Equal(theirs, b) && verdict == "" {
			verdict = fmt.Sprintf("rank %d has read another workload than rank 0: %s, and %s", k, theirs, b)
		}
	}
	heard, err := g.Broadcast([]byte(verdict))
	if err == nil && len(heard) > 0 {
		err = fault.Mistakef("%s", heard)
	}
	return err
}

// peers is the group as the trainer sees it.
type peers struct {
	*ranks.Group
	t *training
}

// Any also confirms checkpoints: rank 0 has made its calls up to here.
func (p peers) Any(yes bool) (bool, error) {
	some, err := p.Group.Any(yes)
	if err == nil {
		p.t.saved = max(p.t.saved, p.t.given)
	}
	return some, err
}

// makeRank makes the agent and trainer of this rank, whose environments are v.
func (t *training) makeRank(v *vec.Vec) error {
	g := t.opt.Ranks
	p := peers{g, t}
	a, err := arena.NewRank(t.cfg, t.spec, t.opt.Workers, g.Rank(), p)
	if err != nil {
		return t.wrongAgent(err)
	}
	trainer, err := train.NewRank(loopOf(t.cfg), v, a, t.cfg.Seed, g.Rank(), g.World(), p)
	if err != nil {
		return err
	}
	trainer.Kernels = kernel.Set()
	t.agent, t.trainer, t.shares = a, trainer, []agents.Share{a, trainer}
	return nil
}

// follow is the training at a rank other than 0.
func (t *training) follow(ctx context.Context) (*TrainResult, error) {
	if t.opt.Resume {
		if err := t.loadRanks(""); err != nil {
			return nil, err
		}
	}
	g := t.opt.Ranks
	t.opt.Say("rank      %d of %d with %d of %s; rank 0 has the run, %s", g.Rank(), g.World(),
		t.cfg.Train.Envs/g.World(), plain.Count(t.cfg.Train.Envs, "environment", "environments"), t.runDir)
	err := t.trainer.Run(ctx, train.Hooks{
		Log:        func(train.Record) error { return nil }, // episodes are collected for it
		Evaluate:   t.listen,
		Checkpoint: t.saveRanks,
	})
	stopped := errors.Is(err, context.Canceled)
	if stopped {
		err = t.saveRanks(t.trainer.Step())
	}
	if err == nil {
		err = t.disband()
	}
	if err == nil && stopped {
		err = fault.Errorf("%w at step %d; rank 0 has saved it, continue all ranks with %s %s", fault.ErrInterrupted,
			t.trainer.Step(), fault.Key("resume"), t.runDir)
	}
	if err != nil {
		return nil, err
	}
	return &TrainResult{Step: t.trainer.Step(), Kernels: kernel.Set()}, nil
}

// announce tells the others, at rank 0, whether the agent is the best so far, so that they give their share of a
// checkpoint.
func (t *training) announce(best bool) error {
	if t.opt.Ranks == nil {
		return nil
	}
	b := []byte{0}
	if best {
		b[0] = 1
	}
	_, err := t.opt.Ranks.Broadcast(b)
	return err
}

// listen waits for rank 0's validation.
func (t *training) listen(step int64) error {
	b, err := t.opt.Ranks.Broadcast(nil)
	if err != nil {
		return err
	}
	t.saved = max(t.saved, t.given)
	if len(b) != 1 || b[0] == 0 {
		return nil
	}
	return t.saveRanks(step)
}

// disband ends the ranks' work together, once rank 0 has written the last checkpoint.
func (t *training) disband() error {
	g := t.opt.Ranks
	if g == nil {
		return nil
	}
	if _, err := (peers{g, t}).Any(false); err != nil {
		return err
	}
	g.Close(nil)
	return nil
}

// leave ends this rank's part of the group and adds to the loss of a rank how to go on.
func (t *training) leave(err error) error {
	g := t.opt.Ranks
	var lost *ranks.LostError
	if errors.As(err, &lost) {
		g.Close(err)
		if t.saved < 0 {
			return fmt.Errorf("%w; the training ends at all ranks before its first checkpoint", lost)
		}
		return fault.Errorf("%w; the training ends at all ranks, its last checkpoint is step %d: go on with %s %s at all "+
			"ranks", lost, t.saved, fault.Key("resume"), t.runDir)
	}
	if errors.Is(err, fault.ErrInterrupted) {
		g.Close(nil)
		return err
	}
	g.Close(err)
	return err
}
