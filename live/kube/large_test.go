package kube

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"clustergym/live"
)

// queue serves n Jobs that wait, in pages, as the API server does; watches are silent.
func queue(tb testing.TB, n int) Config {
	pages := []string{}
	for from := 0; from < n; from += pageSize {
		var items []string
		for i := from; i < min(n, from+pageSize); i++ {
			spec := merged(podSpec(1+i%8), tree{"env": make([]tree, 20)}) // what else real ones have
			o, err := json.Marshal(tree{"metadata": tree{"name": fmt.Sprintf("job-%05d", i), "namespace": "ml",
				"uid": fmt.Sprintf("%08x-0000-4000-8000-000000000000", i), "resourceVersion": "5",
				"creationTimestamp": "2026-01-05T08:00:00Z", "labels": tree{gate: ""},
				"annotations": tree{"note": strings.Repeat("x", 1500)}},
				"spec": tree{"suspend": true, "parallelism": 1, "template": tree{"spec": spec}}})
			if err != nil {
				tb.Fatal(err)
			}
			items = append(items, string(o))
		}
		next := fmt.Sprintf(`, "continue": "%d"`, len(pages)+1)
		if from+pageSize >= n {
			next = ""
		}
		pages = append(pages, fmt.Sprintf(`{"kind": "JobList", "metadata": {"resourceVersion": "7"%s}, "items": [%s]}`, next,
			strings.Join(items, ",")))
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Get("watch") != "":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case strings.HasSuffix(r.URL.Path, "/jobs"):
			var at int
			_, _ = fmt.Sscanf(r.URL.Query().Get("continue"), "%d", &at)
			_, _ = io.WriteString(w, pages[at])
		case strings.HasSuffix(r.URL.Path, "/pods") || strings.HasSuffix(r.URL.Path, "/nodes"):
			_, _ = io.WriteString(w, `{"metadata": {"resourceVersion": "7"}, "items": []}`)
		case r.URL.Path == "/version":
			_, _ = io.WriteString(w, `{"gitVersion": "v1.36.3"}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	tb.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return Config{Server: s.URL}
}

func TestALongQueueIsRead(t *testing.T) {
	c := opened(t, queue(t, 2*pageSize+1))
	s := observed(t, c)
	if len(s.Jobs) != 2*pageSize+1 || !s.Jobs[0].Ours || s.Jobs[0].State != live.Waiting {
		t.Errorf("%d jobs, the first %+v", len(s.Jobs), s.Jobs[0])
	}
}

// The first observation lists 10,000 Jobs, those after it follow the watch.
func BenchmarkFirstObserve10000(b *testing.B) {
	cfg := queue(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		c, err := Open(cfg)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.Observe(ctx); err != nil {
			b.Fatal(err)
		}
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkObserve10000(b *testing.B) {
	c, err := Open(queue(b, 10_000))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it writes nothing
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Observe(ctx); err != nil {
			b.Fatal(err)
		}
	}
}
