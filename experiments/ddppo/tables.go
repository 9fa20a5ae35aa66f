package ddppo

import (
	"fmt"
	"slices"

	"clustergym/experiments/study"
)

// formats has a figure that is 1 or 0 as a word.
var formats = map[string]func(v float64) string{"yes or no": func(v float64) string {
	if v == 1 {
		return "yes"
	}
	return "no"
}}

// values returns what report.yaml names.
func (s *settings) values(study.Plan) map[string][]string {
	var agents, replicas, names, scheduled []string
	for _, n := range s.Replicas {
		agents, replicas = append(agents, replicated(n)), append(replicas, fmt.Sprint(n))
	}
	for i := range rules {
		names, scheduled = append(names, rules[i].name), append(scheduled, rules[i].name+" = "+rules[i].policy)
	}
	g := &s.Straggler
	return map[string][]string{
		"run times": rungs, "policy": slices.Concat(agents, []string{tunedPolicy}, names), "replicas": replicas, "way": ways,
		"trait": traits[:], "agents": agents, "rules": scheduled,
		"last history": {s.last(predicted)}, "last exact": {s.last(known)},
		"stragglers": {fmt.Sprint(g.Replicas)}, "delay": {g.Delay.String()}, "share": {fmt.Sprintf("%.0f", 100*g.Share)},
	}
}

// notes says whose log it is.
func (s *settings) notes(p study.Plan) []string {
	if p.Data == "" {
		return nil
	}
	return []string{"The log is that of --data."}
}
