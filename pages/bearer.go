package pages

import (
	"context"
	"net"
	"net/http"
	"time"

	"clustergym/bridge/server"
	"clustergym/internal/door"
)

// ServeMetrics serves h as /metrics on l until ctx ends, and closes l. With tokens, a request shows one of role read or
// admin as Authorization: Bearer TOKEN. The process has other work, such as holding a gate, so connections that are
// idle or show nothing make room when there are many.
func ServeMetrics(ctx context.Context, l net.Listener, tokens []server.Token, h http.Handler) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", bearer(tokens, h))
	const each = 10 * time.Second // for a request, and for its answer
	return door.New(door.Config{}).Serve(ctx, &http.Server{Handler: mux, ReadTimeout: each, WriteTimeout: each}, l)
}

// bearer lets requests to h that show a token of role read or admin; without tokens, all.
func bearer(tokens []server.Token, h http.Handler) http.Handler {
	s := &Server{opt: Options{Tokens: tokens}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(tokens) > 0 && !s.bears(r) {
			s.refuse(w, r, false, "")
			return
		}
		door.PlaceOf(r).Vouch()
		h.ServeHTTP(w, r)
	})
}
