package server

import (
	"testing"

	"clustergym/bridge/wire"
)

// Servers sign snapshots with keys of their own: only the role admin restores those of another server.
func TestForeignSnapshotsNeedTheRoleAdmin(t *testing.T) {
	t.Parallel()
	q := serve(t, quick()).client()
	q.must("open", "env", "CartPole-v1")
	q.must("reset", "h", 1, "seed", 3)
	blob := q.must("snapshot", "h", 1).Get("blob")
	for role, want := range map[Role]wire.Code{RoleEnv: wire.Forbidden, RoleAdmin: "", RoleEnv | RoleAdmin: ""} {
		cfg := quick()
		cfg.Tokens = []Token{{role, "s3cret"}}
		p := serve(t, cfg).client("auth", "s3cret")
		p.must("open", "env", "CartPole-v1")
		if want == "" {
			p.must("restore", "h", 1, "blob", blob)
		} else {
			p.fails(want, "restore", "h", 1, "blob", blob)
		}
	}
}
