package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"clustergym/live"
	"clustergym/traces/kube"
)

// History lists the Jobs, pods and Workloads that the cluster still knows, those that have ended among them. How long
// it keeps them is its own affair: a Job with ttlSecondsAfterFinished is gone soon.
func (c *Cluster) History(ctx context.Context) (*kube.Objects, error) {
	o := &kube.Objects{Jobs: map[string]*kube.Job{}, Pods: map[string]*kube.Pod{}, Workloads: map[string]*kube.Workload{}}
	var k kueue
	if err := k.discover(ctx, c.c, c.cfg.Namespaces[0]); err != nil {
		return nil, err
	}
	for _, ns := range c.cfg.Namespaces {
		paths := []string{in(batch, ns, "jobs"), in(core, ns, "pods")}
		if k.version != "" && k.hidden == nil {
			paths = append(paths, in(k.api(), ns, "workloads"))
		}
		for _, path := range paths {
			if err := c.addAll(ctx, o, path); err != nil {
				return nil, err
			}
		}
	}
	return o, nil
}

// addAll lists a resource, page by page.
func (c *Cluster) addAll(ctx context.Context, o *kube.Objects, path string) error {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	for {
		var page json.RawMessage
		_, err := c.c.call(ctx, http.MethodGet, path, query, nil, &page)
		switch {
		case errors.Is(err, errExpired) && query.Get("continue") != "": // what has been read is not wrong; it begins anew
			query.Del("continue")
			continue
		case errors.Is(err, errMissing):
			return fmt.Errorf("%w: the server does not offer %s: its version is not one that is known here", live.ErrUnsupported,
				path)
		case err != nil:
			return err
		}
		if err := o.Add(page); err != nil {
			return fmt.Errorf("%w: GET %s: %v", live.ErrUnsupported, path, err)
		}
		var meta struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(page, &meta); err != nil {
			return fmt.Errorf("%w: GET %s: %v", live.ErrUnsupported, path, err)
		}
		if meta.Metadata.Continue == "" {
			return nil
		}
		query.Set("continue", meta.Metadata.Continue)
	}
}
