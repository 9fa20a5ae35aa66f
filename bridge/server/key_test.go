package server

import (
	"testing"

	"clustergym/bridge/wire"
)

// A server with tokens restores what it signed before a restart, and what it signed under the tokens before the present
// ones. Only tokens of role admin decide the key, if there are any.
func TestSnapshotsSurviveRestartsAndNewTokens(t *testing.T) {
	t.Parallel()
	start := func(tokens ...Token) *host {
		cfg := quick()
		cfg.Tokens = tokens
		return serve(t, cfg)
	}
	open := func(h *host, token string) *player {
		p := h.client("auth", token)
		p.must("open", "env", "CartPole-v1")
		return &player{p}
	}
	admin, admin2, a, b := Token{RoleAdmin, "boss"}, Token{RoleAdmin | RoleEnv, "chief"}, Token{RoleEnv, "a"},
		Token{RoleEnv, "b"}

	first := start(admin, admin2, a)
	p := open(first, "a")
	p.must("reset", "h", 1, "seed", 3)
	old := p.blob()
	open(start(b, admin2, admin, admin), "b").restores(old)                          // a restart, with other players
	open(start(admin, b), "b").fails(wire.Forbidden, "restore", "h", 1, "blob", old) // other admins
	open(start(admin, b), "boss").restores(old)

	first.rekey([]Token{admin, a})
	p.restores(old) // in a handle that was open
	open(first, "a").restores(old)
	fresh := p.blob()
	open(first, "a").restores(fresh)
	open(start(a, admin), "a").restores(fresh)
	open(start(a, admin), "a").fails(wire.Forbidden, "restore", "h", 1, "blob", old)

	q := open(start(a, b), "a")
	q.must("reset", "h", 1, "seed", 3)
	open(start(b, a), "b").restores(q.blob())
	open(start(b), "b").fails(wire.Forbidden, "restore", "h", 1, "blob", q.blob())
}

// player is a client with one environment.
type player struct{ *peer }

func (p *player) blob() any { return p.must("snapshot", "h", 1).Get("blob") }

func (p *player) restores(blob any) {
	p.t.Helper()
	p.must("restore", "h", 1, "blob", blob)
}
