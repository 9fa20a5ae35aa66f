package rlscheduler

import (
	"fmt"

	"clustergym/experiments/study"
	"clustergym/internal/fault"
	peer "clustergym/peer/rlscheduler"
	"clustergym/traces/synth"
)

// procs is the number of processors of the machine.
const procs = 256

// length is the number of jobs of a window.
const length = 1024

// training is the number of jobs of a log that are for training; held is where the jobs end that are for tests.
const training, held = 7000, 10000

// settings are the keys of experiment.yaml.
type settings struct {
	Logs   []logSettings     `yaml:"logs"`
	Fresh  int               `yaml:"fresh"` // windows of generated logs, one of each
	Tune   peer.TuneConfig   `yaml:"tune"`
	State  peer.TuneConfig   `yaml:"state"` // of the key with traits of the state
	Search peer.SearchConfig `yaml:"search"`
	Draws  int               `yaml:"draws"` // plays of a trained agent that draw from its softmax
}

// logSettings names a log of 10,000 jobs on 256 processors.
type logSettings struct {
	Name  string       `yaml:"name"`
	File  string       `yaml:"file"`  // in the folder of --data; "" = generated
	Synth synth.Config `yaml:"synth"` // the generator, as trace.synth of a run
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
		if o.File == "" {
			l.Join(key+"synth", o.Synth.Validate())
			l.Add(o.Synth.Jobs == held, key+"synth.jobs", o.Synth.Jobs, "10000, as many as the logs of the paper have")
			l.Add(o.Synth.Procs == procs, key+"synth.procs", o.Synth.Procs, "256, the processors of the machine")
		}
	}
	l.Add(s.Fresh >= 2 && s.Fresh <= 1000, "fresh", s.Fresh, "2 to 1000")
	l.Add(s.Draws >= 1 && s.Draws <= 10000, "draws", s.Draws, "1 to 10000")
	l.Join("tune", s.Tune.Validate())
	l.Join("state", s.State.Validate())
	l.Join("search", s.Search.Validate())
	return l.Err()
}

// settingsOf returns the settings of p's form, quick or full.
func settingsOf(p study.Plan) (settings, error) {
	return study.Settings("rlscheduler", files, p, settings{})
}
