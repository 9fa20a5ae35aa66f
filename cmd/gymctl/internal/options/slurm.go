package options

import (
	"github.com/spf13/pflag"

	"clustergym/live/slurm"
)

// SlurmAccess are the flags that say which Slurm is meant.
type SlurmAccess struct{ Conf, Ssh string }

// Add adds the flags.
func (s *SlurmAccess) Add(f *pflag.FlagSet) {
	f.StringVar(&s.Conf, "slurm-conf", "", "read this slurm.conf, a `FILE` (default where Slurm's commands look)")
	f.StringVar(&s.Ssh, "ssh", "", "run Slurm's commands on `HOST`, over ssh")
}

// Through makes run use that Slurm.
func (s *SlurmAccess) Through(run slurm.Exec) slurm.Exec {
	if s.Conf != "" {
		run.Env = []string{"SLURM_CONF=" + s.Conf}
	}
	if s.Ssh != "" {
		run.Prefix, run.Shell = slurm.SSH(s.Ssh), true
	}
	return run
}
