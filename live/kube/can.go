package kube

import (
	"context"
	"net/http"
	"strings"

	"clustergym/live"
)

// may asks the server whether this user may do something, in all namespaces that are looked at. It returns what is
// missing, "" if nothing is.
func (c *Cluster) may(ctx context.Context, verb, group, resource string) (string, error) {
	name, sub, _ := strings.Cut(resource, "/")
	for _, ns := range c.cfg.Namespaces {
		review := tree{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": tree{
			"resourceAttributes": tree{"verb": verb, "group": group, "resource": name, "subresource": sub, "namespace": ns}}}
		var answer struct {
			Status struct {
				Allowed bool `json:"allowed"`
			} `json:"status"`
		}
		if _, err := c.c.call(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", nil, review,
			&answer); err != nil {
			return "", err
		}
		if !answer.Status.Allowed {
			where := "in all namespaces"
			if ns != "" {
				where = "in namespace " + ns
			}
			if group != "" {
				group = "." + group
			}
			return "this user may not " + verb + " " + resource + group + " " + where, nil
		}
	}
	return "", nil
}

// Can implements live.Cluster. It asks for reviews of this user's rights, which the server does not keep.
func (c *Cluster) Can(ctx context.Context) (live.Caps, error) {
	var caps live.Caps
	k := c.kueue
	if !c.started {
		if err := k.discover(ctx, c.c, c.cfg.Namespaces[0]); err != nil {
			return caps, err
		}
	}
	gating, err := c.lacking(ctx, "gate", [][3]string{{"patch", "batch", "jobs"}, {"get", "batch", "jobs"}})
	if err != nil {
		return caps, err
	}
	caps.Gate, caps.Requeue = gating, gating
	if caps.Rank = k.lacks(); caps.Rank != "" {
		return caps, nil
	}
	caps.Rank, err = c.lacking(ctx, "rank",
		[][3]string{{"patch", kueueGroup, "workloads"}, {"get", kueueGroup, "workloads"}, {"get", "batch", "jobs"}})
	if err == nil && caps.Rank == "" {
		caps.Rank, err = k.preempting(ctx, c.c)
	}
	return caps, err
}

// lacking names the first of the rights of a mode, as verb, group and resource, that this user does not have; "" if it
// has all.
func (c *Cluster) lacking(ctx context.Context, mode string, rights [][3]string) (string, error) {
	for _, r := range rights {
		why, err := c.may(ctx, r[0], r[1], r[2])
		if err != nil {
			return "", err
		}
		if why != "" {
			return why + ": deploy/kubernetes/" + mode + ".yaml has the rights", nil
		}
	}
	return "", nil
}
