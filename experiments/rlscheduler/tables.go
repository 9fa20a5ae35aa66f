package rlscheduler

import (
	"fmt"
	"slices"
	"strings"

	"clustergym/experiments/study"
)

// order returns the order of the values of labels.
func (s *settings) order() map[string][]string {
	var logs []string
	for i := range s.Logs {
		logs = append(logs, s.Logs[i].Name)
	}
	policies := append([]string{search, state, tuned, network, drawn}, rules...)
	return map[string][]string{"log": logs, "back-filling": modes, "policy": policies, "trait": traits[:]}
}

// printed are the means of ten windows that the paper's program prints, in the README of its authors.
var printed = map[string]string{
	"Lublin-1 no fcfs": "7273.77", "Lublin-1 no wfp3-rlscheduler": "19753.53", "Lublin-1 no unicep-rlscheduler": "22274.74", "Lublin-1 no sjf": "277.35", "Lublin-1 no f1": "258.37",
	"Lublin-1 yes fcfs": "235.82", "Lublin-1 yes wfp3-rlscheduler": "133.87", "Lublin-1 yes unicep-rlscheduler": "307.23", "Lublin-1 yes sjf": "73.31", "Lublin-1 yes f1": "75.07",
	"Lublin-2 no fcfs": "7842.47", "Lublin-2 no wfp3-rlscheduler": "9523.18", "Lublin-2 no unicep-rlscheduler": "11265.31", "Lublin-2 no sjf": "787.89", "Lublin-2 no f1": "698.34",
	"Lublin-2 yes fcfs": "247.61", "Lublin-2 yes wfp3-rlscheduler": "318.35", "Lublin-2 yes unicep-rlscheduler": "379.59", "Lublin-2 yes sjf": "91.99", "Lublin-2 yes f1": "148.25",
}

// theirs are the means of RLScheduler's trained agents in the ten windows: the figure that its program prints, which is one draw
// from its softmax, then the mean and standard deviation of such a mean over 100 draws, and the best action always.
var theirs = map[string][3]string{
	"Lublin-1 no": {"254.67", "267.4 ± 12.4", "250.50"}, "Lublin-1 yes": {"58.64", "60.8 ± 3.7", "58.43"},
	"Lublin-2 no": {"724.51", "697.7 ± 36.0", "640.68"}, "Lublin-2 yes": {"118.79", "111.7 ± 8.0", "98.88"},
}

// tables returns the tables of the report.
func (s *settings) tables(p study.Plan) []study.Table {
	two := study.Fixed(2)
	by := []string{"log", "back-filling", "policy"}
	// The ten windows overlap, so that an interval over all of them would be too narrow.
	mean := study.Column{Title: "bounded slowdown", Metric: "bsld", Format: two}
	bare, paper := mean, mean
	bare.Bare, paper.Bare = true, true
	paper.Paper = func(l map[string]string) string { return printed[l["log"]+" "+l["back-filling"]+" "+l["policy"]] }
	versus := func(policy string) study.Column {
		return study.Column{Title: "vs " + policy, Metric: "bsld", Stat: study.Percent, Versus: map[string]string{"policy": policy}}
	}
	against := []study.Column{versus("f1"), versus("f4"), versus("sjf"), versus("smallest-area")}
	few := []study.Column{bare} // for two windows an interval says nothing
	for _, c := range against {
		c.Bare = true
		few = append(few, c)
	}
	ten := []study.Column{paper, {Title: "deviates", Metric: "deviated", Format: study.Share, Bare: true}}
	if len(p.Agents) > 0 {
		spread := study.Column{Title: "± of a draw", Metric: "spread", Format: two, Bare: true}
		ten, few = append(ten, spread), append(few, spread)
	}
	return []study.Table{
		{
			Name: "published", Title: "The paper's ten windows of 1,024 jobs", From: published, By: by, Order: s.order(), Columns: ten,
			Notes: []string{"paper: what its program prints. All of these windows are training data of its agent; of ours, what lies in jobs 0 to 6999. wfp3-rlscheduler and unicep-rlscheduler take −1 − submit for the wait, as that program does."},
		},
		{
			Name: "published-apart", Title: fmt.Sprintf("Those of the ten that do not overlap, from jobs %s", strings.Trim(strings.ReplaceAll(fmt.Sprint(apart()), " ", ", "), "[]")),
			From: published, Where: map[string]string{"apart": "true"}, By: by, Order: s.order(), Columns: study.Hide(append([]study.Column{mean}, against...), "vs f4", "vs sjf", "vs smallest-area"),
		},
		{
			Name: "held-out", Title: "Windows wholly inside jobs 7000 to 9999, which nothing of ours was trained on", From: heldOut, By: by, Order: s.order(),
			Keep: near, Columns: few,
			Notes: []string{"Two windows: they say little about other logs."},
		},
		{
			Name: "fresh", Title: "Windows of fresh logs", From: fresh, By: by, Order: s.order(), Keep: near, Columns: study.Hide(append([]study.Column{mean}, against...), "vs f4", "vs sjf"),
			Notes: []string{"log: where the policy was trained. Fresh logs are of the model of Lublin and Feitelson, or the files of DIR/swf/fresh; their windows do not overlap."},
		},
		{
			Name: "key", Title: "The tuned keys: the job of the least weighted sum is next", By: []string{"log", "back-filling", "trait"}, Order: s.order(),
			Columns: []study.Column{{Title: "weight", Metric: "weight", Format: study.Fixed(3), Bare: true}},
			Notes:   []string{"r: request, at least 10 s; n: processors; r n/256: ln r · n/256; submit: in units of 12 h; ln r squared: a tenth of it; wide: 1 for more than 128 processors."},
		},
		{
			Name: "state-key", Title: "The tuned keys with traits of the state", From: "state key", By: []string{"log", "back-filling", "trait"}, Order: s.order(),
			Columns: []study.Column{{Title: "weight", Metric: "weight", Format: study.Fixed(3), Bare: true}},
			Notes:   []string{"blocked: 1 if the job does not fit; delay: ln of 1 + the minutes until it does; delay of all: ln of 1 + that time over the requests of all that wait, summed; slowdown: ln of (wait + r)/r; blocked ln r: ln r if it does not fit."},
		},
	}
}

// near reports whether a line's policy is one of those that come near to each other.
func near(line map[string]string) bool {
	switch line["policy"] {
	case "fcfs", "wfp3-rlscheduler", "unicep-rlscheduler", "wfp3", "unicep":
		return false
	}
	return true
}

// claims returns what RLScheduler's agent reaches beside ours.
func (s *settings) claims(p study.Plan) []study.Claim {
	logs, _, err := s.given(p)
	if err != nil {
		return nil
	}
	var all []study.Claim
	for i := range logs {
		for _, mode := range modes {
			a, ok := theirs[logs[i].Name+" "+mode]
			if !ok {
				continue
			}
			what := logs[i].Name
			if mode == "yes" {
				what += ", back-filling"
			}
			policies := []string{tuned, state, search}
			if slices.ContainsFunc(p.Agents, func(a study.Agent) bool { return a.Where == logs[i].Name }) {
				policies = append(policies, network, drawn)
			}
			for _, policy := range policies {
				all = append(all, study.Claim{
					What: what + ": its agent, and " + policy, Paper: a[0] + "; " + a[1] + "; " + a[2], Table: "published",
					Line: map[string]string{"log": logs[i].Name, "back-filling": mode, "policy": policy}, Column: "bounded slowdown",
				})
			}
		}
	}
	return all
}

// figures returns the drawings of the report.
func (s *settings) figures(study.Plan) []study.Figure {
	var all []study.Figure
	for _, mode := range modes {
		name, title := "fresh", "Bounded slowdown in windows of fresh logs"
		if mode == "yes" {
			name, title = "fresh-back-filling", title+", with back-filling"
		}
		all = append(all, study.Figure{
			Name: name, Title: title, X: "bounded slowdown", Kind: study.Bars, Zero: true, Ours: []string{search, state, tuned, network, drawn}, Sorted: true,
			Series: func(r *study.Results) []study.Series {
				return r.Bars("fresh", "bounded slowdown", func(l map[string]string) bool {
					switch l["policy"] {
					case search, state, tuned, network, drawn, "f1", "f4", "sjf", "smallest-area":
						return l["back-filling"] == mode
					}
					return false
				})
			},
		})
	}
	return all
}

// notes returns sentences on how to read the tables.
func (s *settings) notes(p study.Plan) []string {
	all := []string{
		"The paper's agent: one draw, as its program prints it; mean ± standard deviation of such a mean over 100 draws; the best action always. The last two are measurements with its program.",
		"The environment: the means of all rules of the paper's table are equal to the last digit that it prints where its logs are given (--data); every recorded decision and observation of its agent is too.",
		"tuned: the waiting job of the least key, tuned on jobs 0 to 6999 of the log. tuned-state: the same with five traits of the machine's state, tuned on from there. tuned+search: at each decision, some jobs are tried in futures drawn from the same jobs, without those of the window.",
		"Run times are known exactly, as in the paper: the logs have no requested times, and its simulator takes the run time.",
	}
	if played, err := s.trained(p); err == nil {
		for _, t := range played {
			all = append(all, t.said(s.Draws))
		}
	}
	if _, absent, err := s.given(p); err == nil && len(absent) > 0 {
		why := "there is no --data"
		if p.Data != "" {
			why = p.Data + " does not have them"
		}
		all = append(all, fmt.Sprintf("Left out: %s, as %s.", strings.Join(absent, ", "), why))
	}
	return all
}
