package improper

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/experiments/study"
	"clustergym/experiments/study/studytest"
	"clustergym/internal/raced"
)

// smallSettings makes a study that takes some seconds.
func smallSettings(study.Plan) (settings, error) {
	s, err := settingsOf(study.Plan{Quick: true})
	s.Networks, s.NetSeeds, s.NetSteps, s.Episodes, s.Slots = []string{"skewed"}, 1, 65536, 4, 500
	s.Workloads, s.Jobs, s.Windows, s.Seeds, s.Steps = []string{"turning"}, 8000, 3, 1, 2048
	return s, err
}

func TestSettingsAreInOrder(t *testing.T) {
	for _, quick := range []bool{false, true} {
		s, err := settingsOf(study.Plan{Quick: quick})
		if err != nil {
			t.Fatal(err)
		}
		for _, seeds := range []int{0, 2} {
			with, err := settingsOf(study.Plan{Quick: quick, Seeds: seeds})
			if err != nil || seeds > 0 && (with.Seeds != 2 || with.NetSeeds != 2) || seeds == 0 && with.Seeds != s.Seeds {
				t.Errorf("%d seeds: %+v (%v)", seeds, with, err)
			}
		}
		cells, err := s.cells(study.Plan{})
		if err != nil || len(cells) == 0 {
			t.Fatal(err)
		}
	}
	for want, bad := range map[string]func(s *settings){
		"networks: got \"evn\"":       func(s *settings) { s.Networks[0] = "evn" },
		"networks: got \"path\"":      func(s *settings) { s.Networks = []string{"path", "path"} },
		"workloads: got \"trning\"":   func(s *settings) { s.Workloads[0] = "trning" },
		"net_seeds: got 0, want 1 to": func(s *settings) { s.NetSeeds = 0 },
		"net_steps":                   func(s *settings) { s.NetSteps = 1 },
		"episodes":                    func(s *settings) { s.Episodes = 1 },
		"slots":                       func(s *settings) { s.Slots = 1 },
		"jobs":                        func(s *settings) { s.Jobs = 100 },
		"windows":                     func(s *settings) { s.Windows = 0 },
		"seeds":                       func(s *settings) { s.Seeds = 0 },
		"steps: got 1, want 1024 to":  func(s *settings) { s.Steps = 1 },
	} {
		s, err := settingsOf(study.Plan{})
		if err != nil {
			t.Fatal(err)
		}
		bad(&s)
		if err := s.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// Networks are valid, and a scheduler can keep their queues short: of two queues that no set serves together, the
// services that they need fit into the slots. In these networks that is enough.
func TestNetworksAreSound(t *testing.T) {
	for _, n := range networks() {
		if err := n.Validate(); err != nil {
			t.Error(err)
		}
		need := make([]float64, n.Queues()) // services in a slot
		for i := range need {
			for _, rates := range n.Rates {
				need[i] += rates[i] / float64(len(n.Rates))
			}
			if n.Up != nil {
				need[i] /= n.Up[i]
			}
		}
		for i := range need {
			for j := range i {
				together := slices.ContainsFunc(n.Sets,
					func(set []int) bool { return slices.Contains(set, i) && slices.Contains(set, j) })
				if !together && need[i]+need[j] >= 0.95 {
					t.Errorf("%s: queues %d and %d need %v services in a slot", n.Name, j, i, need[i]+need[j])
				}
			}
		}
	}
}

// Requests are right in phases of tests, and of wide jobs in phases of sweeps.
func TestTheWorkloadTurns(t *testing.T) {
	jobs, err := turn(4*phase, 3)
	if err != nil {
		t.Fatal(err)
	}
	last := time.Duration(0)
	for i := range jobs {
		j := &jobs[i]
		if j.Submit < last || j.Work < time.Second || j.GPUs > 8 || j.Estimate < j.Work && j.Estimate != 24*time.Hour {
			t.Fatalf("job %d is %+v", i, *j)
		}
		last = j.Submit
		sweep, day := i/phase%2 == 1, j.Estimate == 24*time.Hour
		if day && !sweep || sweep && day != (j.GPUs <= 2) {
			t.Fatalf("job %d of phase %d is %+v", i, i/phase, *j)
		}
	}
}

// The figures do not depend on the number of workers; learning goes in the right direction where uniform choices are
// not stable.
func TestTheStudyInSmall(t *testing.T) {
	if testing.Short() || raced.On {
		t.Skip("some seconds")
	}
	r, _ := studytest.Small(t, studyWith(smallSettings), "network-skewed")
	packets := func(policy string) float64 {
		v, _, ok := r.Results.Find("networks", map[string]string{"network": "skewed", "policy": policy}, "packets")
		if !ok || math.IsNaN(v.Value) {
			t.Errorf("no packets of %s", policy)
		}
		return v.Value
	}
	for _, policy := range append(learners(), shares, exact) {
		if got := packets(policy); !(got < packets(uniform)) || got < packets(optimum) {
			t.Errorf("%s has %v packets, uniform choices %v and the optimum %v", policy, got, packets(uniform), packets(optimum))
		}
	}
	weight := func(policy string) float64 {
		v, _, ok := r.Results.Find("weights",
			map[string]string{"network": "skewed", "policy": policy, "controller": "queue 1"}, "weight")
		if !ok {
			t.Errorf("no weight of %s", policy)
		}
		return v.Value
	}
	if got, want := weight(exact), weight(shares); math.Abs(got-want) > 0.005 { // they differ by the discount
		t.Errorf("the true gradient gives queue 1 the weight %v, the closed form %v", got, want)
	}
	if packets(best) != min(packets("queue 1"), packets("queue 2")) {
		t.Errorf("the best base has %v packets", packets(best))
	}
	for _, policy := range append(players(), likeliest, best, hindsight, uniform, byHand, "sjf") {
		v, _, ok := r.Results.Find("workloads", map[string]string{"workload": "turning", "policy": policy}, "JCT (h)")
		if !ok || !(v.Value > 0) {
			t.Errorf("no JCT of %s", policy)
		}
		sum := 0.0
		for _, name := range []string{"fifo", "sjf", "smallest", "largest", "wfp3"} {
			c, _, ok := r.Results.Find("choices", map[string]string{"workload": "turning", "policy": policy}, name)
			if ok {
				sum += c.Value
			}
		}
		if slices.Contains(players(), policy) && math.Abs(sum-1) > 1e-9 {
			t.Errorf("%s: shares of choices sum to %v", policy, sum)
		}
	}
}

func TestKeysHaveNoBlanks(t *testing.T) {
	for _, p := range append(learners(), players()...) {
		if w := word(p); strings.ContainsAny(w, ", ") || w == "" {
			t.Errorf("%q", w)
		}
	}
	if got := word(byState); got != "nac-by-state" {
		t.Errorf("%q", got)
	}
}
