package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"clustergym/bridge/wire"
	"clustergym/internal/door"
)

const (
	headerTimeout  = 5 * time.Second  // for the headers of a request, and for the TLS handshake
	requestTimeout = 30 * time.Second // for a plain HTTP request
)

var subprotocols = []string{wire.SubMsgpack, wire.SubJSON} // in the order in which the server picks

// routes returns the handler of everything on the server's port.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/ws", s.websocket)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", s.ready)
	mux.HandleFunc("GET /v1/version", s.version)
	mux.HandleFunc("GET /v1/envs", s.needs(RoleEnv, s.list))
	mux.HandleFunc("GET /metrics",
		s.needs(RoleRead, promhttp.HandlerFor(s.met.registry, promhttp.HandlerOpts{}).ServeHTTP))
	mux.HandleFunc("POST /v1/drain", s.needs(RoleAdmin, s.askDrain))
	return mux
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // it fails only if the client is gone
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	if s.draining.Load() {
		say(w, http.StatusServiceUnavailable, "draining\n")
		return
	}
	say(w, http.StatusOK, "ready\n")
}

func (s *Server) askDrain(w http.ResponseWriter, _ *http.Request) {
	s.askOnce.Do(func() { close(s.drain) })
	say(w, http.StatusAccepted, "draining\n")
}

func (s *Server) version(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, map[string]any{
		"server": map[string]string{"name": serverName, "version": s.cfg.Version, "commit": s.cfg.Commit},
		"proto":  []int{wire.Proto, wire.Proto},
	})
}

// listed is one environment at /v1/envs.
type listed struct {
	ID       string          `json:"id"`
	Obs      json.RawMessage `json:"obs_space"`
	Act      json.RawMessage `json:"act_space"`
	MaxSteps int             `json:"max_episode_steps,omitempty"`
	Kwargs   any             `json:"kwargs,omitempty"`
	SHA      string          `json:"scenario_sha,omitempty"`
}

func (s *Server) list(w http.ResponseWriter, _ *http.Request) {
	out := struct {
		Envs []listed `json:"envs"`
	}{Envs: []listed{}}
	for _, l := range s.factory.List() {
		out.Envs = append(out.Envs, listed{
			ID: l.ID, MaxSteps: l.Spec.MaxSteps, Kwargs: l.Kwargs, SHA: l.SHA,
			Obs: spaceJSON(wire.ObsSpace(l.Spec, wire.ViewDict, false)), Act: spaceJSON(wire.ActionSpace(l.Spec)),
		})
	}
	writeJSON(w, out)
}

func spaceJSON(sp *wire.Space) json.RawMessage {
	w := wire.NewWriter(wire.JSON)
	w.Value(sp)
	return slices.Clone(w.Bytes())
}

func writeJSON(w http.ResponseWriter, v any) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, "the list of environments cannot be written: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(b, '\n')) // it fails only if the client is gone
}

// websocket accepts a client's connection, which goroutines of its own then serve.
func (s *Server) websocket(w http.ResponseWriter, r *http.Request) {
	if !s.originAllowed(r) {
		s.warn(warnOrigin, "client", r.RemoteAddr, "origin", r.Header.Get("Origin"))
		http.Error(w, "pages of this origin may not connect; the server can be told to allow it", http.StatusForbidden)
		return
	}
	var role Role
	token, there := bearer(r)
	if there || len(s.cfg.Tokens) == 0 {
		if role = s.roleOf(token); role == 0 {
			s.refuse(w, r)
			return
		}
		if role&RoleEnv == 0 {
			http.Error(w, "sessions need a token of role env, yours is "+role.String(), http.StatusForbidden)
			return
		}
	}
	if offered := websocket.Subprotocols(r); len(offered) > 0 && !slices.ContainsFunc(offered, spoken) {
		http.Error(w, "no common subprotocol: this server speaks "+wire.SubMsgpack+" and "+wire.SubJSON,
			http.StatusBadRequest)
		return
	}
	if !s.admit() {
		http.Error(w, "the server is ending: connect again in a while, or to another one", http.StatusServiceUnavailable)
		return
	}
	p := door.PlaceOf(r)
	if s.vouched(r, there) {
		p.Vouch()
	}
	ws, err := s.up.Upgrade(w, r, nil)
	if err != nil {
		p.Vacate()
		s.dismiss()
		return // Upgrade has answered
	}
	c := newConn(s, ws, role, p)
	p.Upgraded(c)
	s.enter(c)
	go c.serve() // undoes enter and admit at its end
}

func spoken(sub string) bool { return slices.Contains(subprotocols, sub) }

// admit counts a new connection. It returns false if the server accepts no more.
func (s *Server) admit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.wg.Add(1)
	return true
}

// dismiss undoes admit.
func (s *Server) dismiss() { s.wg.Done() }

func (s *Server) enter(c *conn) {
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	if s.draining.Load() {
		_ = c.shut(wire.CloseNotNow, notNow) // the reader notices the error
	}
}

func (s *Server) leave(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.fewer()
}

// fewer wakes waitFor, because a session or a connection has ended.
func (s *Server) fewer() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}
