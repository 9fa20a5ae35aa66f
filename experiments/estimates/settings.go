package estimates

import (
	"fmt"

	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/lab/run"
	"clustergym/simulator/cluster"
	"clustergym/traces/synth"
)

// settings are the keys of experiment.yaml.
type settings struct {
	Logs    []logSettings `yaml:"logs"`
	Blocks  int           `yaml:"blocks"`      // consecutive parts of a log's jobs, the units of its intervals
	Windows int           `yaml:"windows"`     // of the second half of a log
	Splits  []float64     `yaml:"splits,flow"` // shares of a log's jobs before which one model is fitted
	Seeds   int           `yaml:"seeds"`       // of noisy estimates
}

// logSettings names a workload and its cluster.
type logSettings struct {
	Name    string       `yaml:"name"`
	Cluster string       `yaml:"cluster"`
	File    string       `yaml:"file"`  // in the folder of --data; "" = generated
	Jobs    int          `yaml:"jobs"`  // of the file, the first ones; 0 = all
	Synth   synth.Config `yaml:"synth"` // the generator, as trace.synth of a run
	Load    float64      `yaml:"load"`  // offered load to which submit times are stretched; 0 = as recorded or generated
}

// Validate returns an error that names every fault of s, or nil.
func (s *settings) Validate() error {
	var l fault.List
	l.Add(len(s.Logs) > 0, "logs", s.Logs, "one or more")
	seen := map[string]bool{}
	for i := range s.Logs {
		o := &s.Logs[i]
		key := fmt.Sprintf("logs[%d].", i)
		l.Add(study.Word(o.Name) && !seen[o.Name], key+"name", o.Name, "letters, digits and hyphens, each name once")
		seen[o.Name] = true
		_, ok, err := cluster.Parse(o.Cluster)
		l.Add(ok && err == nil, key+"cluster", o.Cluster, "pool:N or NxG")
		l.Add(o.Jobs >= 0, key+"jobs", o.Jobs, "a number of jobs, or 0 for all")
		l.Add(o.Load >= 0 && o.Load <= 10, key+"load", o.Load, "an offered load up to 10, or 0 for the recorded one")
		if o.File == "" {
			l.Join(key+"synth", o.Synth.Validate())
		}
	}
	l.Add(s.Blocks >= 4 && s.Blocks%2 == 0, "blocks", s.Blocks, "an even number from 4")
	l.Add(s.Windows >= 2, "windows", s.Windows, "2 or more")
	for _, x := range s.Splits {
		l.Add(x >= 0.1 && x <= 0.9, "splits", x, "shares from 0.1 to 0.9")
	}
	l.Add(s.Seeds >= 1 && s.Seeds <= run.MaxSeeds, "seeds", s.Seeds, fmt.Sprintf("1 to %d", run.MaxSeeds))
	return l.Err()
}

// settingsOf returns the settings of p's form, quick or full, with p's number of seeds.
func settingsOf(p study.Plan) (settings, error) {
	s, err := study.Settings("estimates", files, p, settings{})
	s.Seeds = p.SeedsOr(s.Seeds)
	return s, err
}
