package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"clustergym/live"
	"clustergym/traces/kube"
)

const kueueGroup = "kueue.x-k8s.io"

// knownKueue are the versions of Kueue's API whose Workloads are known here, the best first.
var knownKueue = []string{"v1beta2", "v1beta1"}

// kueue is what the cluster has of Kueue.
type kueue struct {
	version string // that is used; "" = none
	offered string // versions, if none of them is known here
	hidden  error  // Workloads may not be listed
}

func (k *kueue) api() string { return "/apis/" + kueueGroup + "/" + k.version }

// discover asks which versions there are, and whether Workloads of a namespace may be seen, "" = of all.
func (k *kueue) discover(ctx context.Context, c *client, namespace string) error {
	*k = kueue{}
	var group struct {
		Versions []struct {
			Version string `json:"version"`
		} `json:"versions"`
	}
	_, err := c.call(ctx, http.MethodGet, "/apis/"+kueueGroup, nil, nil, &group)
	switch {
	case errors.Is(err, errMissing):
		return nil
	case err != nil:
		return err
	}
	var names []string
	for _, v := range group.Versions {
		names = append(names, v.Version)
	}
	for _, known := range knownKueue {
		if slices.Contains(names, known) {
			k.version = known
			break
		}
	}
	if k.version == "" {
		k.offered = strings.Join(names, ", ")
		return nil
	}
	_, err = c.call(ctx, http.MethodGet, in(k.api(), namespace, "workloads"), map[string][]string{"limit": {"1"}}, nil,
		nil)
	switch {
	case errors.Is(err, errMissing): // the group is there for other kinds
		*k = kueue{}
	case errors.Is(err, live.ErrDenied):
		k.hidden = err
	case err != nil:
		return err
	}
	return nil
}

// queues reports whether a Job waits in a queue of Kueue, in whatever version, so that Kueue says when it runs.
func (k *kueue) queues(j *kube.Job) bool {
	return (k.version != "" || k.offered != "") && j.Labels[kube.QueueLabel] != ""
}

// lacks says why no rank can be written, "" if the cluster has what it takes.
func (k *kueue) lacks() string {
	switch {
	case k.offered != "":
		return fmt.Sprintf("Kueue offers version %[2]s of %[1]s, and this program knows %[3]s", kueueGroup, k.offered,
			strings.Join(knownKueue, ", "))
	case k.version == "":
		return "the cluster has no Kueue, whose Workloads alone have a priority that may change while a job waits; " +
			"PriorityClasses are not touched"
	case k.hidden != nil:
		return "Workloads may not be seen: " + k.hidden.Error()
	}
	return ""
}

// preempting returns why a written rank could stop running Workloads, "" if it cannot.
func (k *kueue) preempting(ctx context.Context, c *client) (string, error) {
	var queues struct {
		Items []struct {
			kube.Meta `json:"metadata"`
			Spec      struct {
				Preemption struct {
					Within  string `json:"withinClusterQueue"`
					Reclaim string `json:"reclaimWithinCohort"`
					Borrow  struct {
						Policy string `json:"policy"`
					} `json:"borrowWithinCohort"`
				} `json:"preemption"`
			} `json:"spec"`
		} `json:"items"`
	}
	if _, err := c.call(ctx, http.MethodGet, k.api()+"/clusterqueues", nil, nil, &queues); errors.Is(err, live.ErrDenied) {
		return "ClusterQueues may not be seen, and one that preempts would stop running jobs when a rank is written: grant " +
			"list on clusterqueues, which deploy/kubernetes/rank.yaml has", nil
	} else if errors.Is(err, errMissing) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	for _, q := range queues.Items {
		p := q.Spec.Preemption
		for _, policy := range [][2]string{{"withinClusterQueue", p.Within}, {"reclaimWithinCohort", p.Reclaim},
			{"borrowWithinCohort.policy", p.Borrow.Policy}} {
			// Any reclaims what was lent, whatever the priorities are.
			if strings.Contains(policy[1], "Lower") {
				return fmt.Sprintf(
					"ClusterQueue %s stops running Workloads for waiting ones of higher priority (preemption.%s: %s), which a rank "+
						"would bring about: set it to Never",
					q.Name, policy[0], policy[1]), nil
			}
		}
	}
	return "", nil
}

// ranked is what the annotation clustergym/rank of a Workload says.
type ranked struct {
	Score int64 `json:"score"`
	Wrote int32 `json:"wrote"`
	Base  int32 `json:"base"` // the priority that was there before
	Unset bool  `json:"unset,omitempty"`
}

// rank returns what was written, the zero value if nothing was, or somebody has changed the priority since.
func (u *unit) rank() (r ranked) {
	text := u.wl.Annotations[rankKey]
	if text == "" || json.Unmarshal([]byte(text), &r) != nil || u.wl.Spec.Priority == nil ||
		*u.wl.Spec.Priority != r.Wrote {
		return ranked{}
	}
	return r
}

// base is the priority that a Workload has without us.
func (u *unit) base() int32 {
	if r := u.rank(); r.Score > 0 {
		return r.Base
	}
	if u.wl.Spec.Priority == nil {
		return 0
	}
	return *u.wl.Spec.Priority
}

// room returns by how much a rank may raise each priority that waiting Workloads have, so that none reaches the next
// higher one: priorities stay in force.
func (v *view) room() map[int32]int64 {
	var bases []int32
	for _, u := range v.units {
		if u.wl != nil && u.wl.Admitted().IsZero() && kube.Holds(u.wl.Status.Conditions, "Finished") == nil {
			bases = append(bases, u.base())
		}
	}
	slices.SortFunc(bases, cmp.Compare[int32])
	bases = slices.Compact(bases)
	room := map[int32]int64{}
	for i, b := range bases {
		next := int64(math.MaxInt32) + 1
		if i+1 < len(bases) {
			next = int64(bases[i+1])
		}
		room[b] = min(next-int64(b)-1, live.MaxScore)
	}
	return room
}

// raise scales a score to the room above a priority. Scores that differ may come to the same.
func raise(score, room int64) int64 {
	if score == 0 || room == 0 {
		return 0
	}
	return max(1, score*room/live.MaxScore)
}
