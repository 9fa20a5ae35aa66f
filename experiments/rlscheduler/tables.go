package rlscheduler

import (
	"slices"
	"strconv"
	"strings"

	"clustergym/experiments/study"
)

// theirs are the means of RLScheduler's trained agents in the ten windows: the figure that its program prints, which is
// one draw from its softmax, then the mean and standard deviation of such a mean over 100 draws, and the best action
// always.
var theirs = map[string]string{
	"Lublin-1 no": "254.67; 267.4 ± 12.4; 250.50", "Lublin-1 yes": "58.64; 60.8 ± 3.7; 58.43",
	"Lublin-2 no": "724.51; 697.7 ± 36.0; 640.68", "Lublin-2 yes": "118.79; 111.7 ± 8.0; 98.88",
}

// values returns what report.yaml names.
func (s *settings) values(p study.Plan) map[string][]string {
	var logs, disjoint, agents []string
	for i := range s.Logs {
		logs = append(logs, s.Logs[i].Name)
	}
	for _, at := range apart() {
		disjoint = append(disjoint, strconv.Itoa(at))
	}
	if len(p.Agents) > 0 {
		agents = []string{"yes"}
	}
	_, absent, _ := s.given(p) // Cells reports the fault
	return map[string][]string{
		"log": logs, "back-filling": modes, "policy": append([]string{search, state, tuned, network, drawn}, rules...),
		"trait": traits[:], "apart": disjoint, "agents": agents, "absent": absent,
	}
}

// claims returns what RLScheduler's agent reaches beside ours.
func (s *settings) claims(p study.Plan) (all []study.Claim) {
	logs, _, _ := s.given(p) // Cells reports the fault
	for i := range logs {
		for _, mode := range modes {
			paper, ok := theirs[logs[i].Name+" "+mode]
			if !ok {
				continue
			}
			what := logs[i].Name + strings.Repeat(", back-filling", slices.Index(modes, mode))
			policies := []string{tuned, state, search}
			if slices.ContainsFunc(p.Agents, func(a study.Agent) bool { return a.Where == logs[i].Name }) {
				policies = append(policies, network, drawn)
			}
			for _, policy := range policies {
				all = append(all, study.Claim{
					What: what + ": its agent, and " + policy, Paper: paper, Table: "published",
					Line:   map[string]string{"log": logs[i].Name, "back-filling": mode, "policy": policy},
					Column: "bounded slowdown",
				})
			}
		}
	}
	return all
}

// notes describes the agents that play.
func (s *settings) notes(p study.Plan) (all []string) {
	played, _ := s.trained(p) // Cells reports the fault
	for _, t := range played {
		all = append(all, t.said(s.Draws))
	}
	return all
}
