package slurm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"clustergym/live"
)

// Can implements live.Cluster.
func (c *Cluster) Can(ctx context.Context) (live.Caps, error) {
	conf, err := c.config(ctx)
	if errors.Is(err, live.ErrUnsupported) {
		why := strings.TrimPrefix(err.Error(), live.ErrUnsupported.Error()+": ") // who asks says so
		return live.Caps{Rank: why, Gate: why, Requeue: why}, nil
	}
	if err != nil {
		return live.Caps{}, err
	}
	c.asked = false
	if err := c.who(ctx, conf); err != nil {
		return live.Caps{}, err
	}
	var caps live.Caps
	if !c.operator {
		caps.Rank = fmt.Sprintf(
			"only an operator of Slurm may write SiteFactor, and %s is none (sacctmgr modify user %s set adminlevel=operator)",
			c.user, c.user)
	}
	if !c.admin {
		hidden := conf.get("PrivateData")
		if strings.Contains(hidden, "jobs") && !c.operator {
			caps.Gate = fmt.Sprintf(
				"slurm.conf has PrivateData=%s, so %s sees no jobs of others and cannot tell which GPUs are free", hidden, c.user)
		} else if others, err := c.others(ctx, conf); err != nil {
			return live.Caps{}, err
		} else if others > 0 {
			caps.Gate = fmt.Sprintf(
				"only an administrator of Slurm may write AdminComment, where steer notes what it holds; %s is none, and jobs of "+
					"others wait: %d (sacctmgr modify user %s set adminlevel=admin)", c.user, others, c.user)
		}
		caps.Requeue = caps.Gate
	}
	if conf.get("PriorityType") != "priority/multifactor" {
		caps.Rank = noRank(conf)
	}
	return caps, nil
}

// Weights returns the SiteFactor of the highest score, and the sum of the weights that slurm.conf gives all other
// factors of the priority: where the first is far below the second, scores change little.
func (c *Cluster) Weights(ctx context.Context) (score, others int64, err error) {
	conf, err := c.config(ctx)
	if err != nil {
		return 0, 0, err
	}
	return c.o.Weight, conf.weights(), nil
}

func noRank(conf config) string {
	return fmt.Sprintf("slurm.conf has PriorityType=%s, which knows no SiteFactor; want priority/multifactor",
		conf.get("PriorityType"))
}

// others counts the jobs of others that wait.
func (c *Cluster) others(ctx context.Context, conf config) (n int, err error) {
	err = c.jobs(ctx, conf, func(r *record) error {
		if r.state() == live.Waiting && r.user != c.user {
			n++
		}
		return nil
	})
	return n, err
}

// who finds out who we are, and what we may write to the jobs of others: operators may write a SiteFactor, but no
// AdminComment.
func (c *Cluster) who(ctx context.Context, conf config) error {
	if c.asked {
		return nil
	}
	var err error
	if c.user, err = c.word(ctx, "id", "-un"); err != nil {
		return err
	}
	slurmUser, _, _ := strings.Cut(conf.get("SlurmUser"), "(")
	c.admin = c.user == slurmUser || c.user == "root"
	c.operator = c.admin
	if !c.admin && conf.get("AccountingStorageType") == "accounting_storage/slurmdbd" {
		level, err := c.word(ctx, "sacctmgr", "-n", "-P", "show", "user", "name="+c.user, "format=AdminLevel")
		exit, failed := errors.AsType[*ExitError](err)
		if err != nil && !errors.Is(err, exec.ErrNotFound) && !failed {
			return err
		}
		if failed && meaning(exit.Said) == live.ErrUnreachable {
			return err
		}
		level = strings.ToLower(level)
		c.admin = strings.HasPrefix(level, "admin")
		c.operator = c.admin || strings.HasPrefix(level, "operator")
	}
	c.asked = true
	return nil
}

// owner returns the user whose jobs we may hold, if we are no administrator; "" if we are.
func (c *Cluster) owner() string {
	if c.admin {
		return ""
	}
	return c.user
}

// word returns the first line that a command prints.
func (c *Cluster) word(ctx context.Context, args ...string) (line string, err error) {
	err = c.output(ctx, func(r io.Reader) error {
		s := bufio.NewScanner(r)
		if s.Scan() {
			line = strings.TrimSpace(s.Text())
		}
		return s.Err()
	}, args...)
	return line, err
}
