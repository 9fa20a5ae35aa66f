package server

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
)

// keyRounds makes guessing an admin token from a signed snapshot slow. Deriving the key takes some tens of
// milliseconds, once for a set of tokens.
const keyRounds = 1 << 17

// snapshotKey returns what derives the key that signs snapshots under tokens. It depends only on the tokens of role
// admin, in any order, so a restarted server and one with other players sign alike. Players do not know these tokens,
// so they cannot sign for the server, and a client that knows one may restore foreign snapshots anyway. If no token has
// that role, the key depends on all tokens; then a player who knows all of them can sign. Without tokens the key is
// drawn.
func snapshotKey(tokens []Token) func() []byte {
	var secrets []string
	for _, t := range tokens {
		if t.Role&RoleAdmin != 0 {
			secrets = append(secrets, t.Secret)
		}
	}
	if secrets == nil {
		for _, t := range tokens {
			secrets = append(secrets, t.Secret)
		}
	}
	if secrets == nil {
		key := make([]byte, sha256.Size)
		_, _ = rand.Read(key) // it never fails
		return func() []byte { return key }
	}
	slices.Sort(secrets)
	secret := strings.Join(slices.Compact(secrets), "\n") // no token has a line break
	return func() []byte {
		key, err := pbkdf2.Key(sha256.New, secret, []byte("clustergym bridge snapshots 1"), keyRounds, sha256.Size)
		if err != nil {
			panic(fmt.Sprintf("server: deriving the key of snapshots: %v", err)) // only a length beyond all bounds is refused
		}
		return key
	}
}

// rekey signs later snapshots under tokens. Snapshots that were signed under the tokens before are still restored,
// until the server ends.
func (s *Server) rekey(tokens []Token) {
	if len(tokens) > 0 {
		s.key.Change(snapshotKey(tokens))
	}
}
