package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
)

// digest stands for a token: of equal length for all, so that comparing takes the same time whatever is shown.
type digest struct {
	sum  [sha256.Size]byte
	role Role
}

func digests(tokens []Token) []digest {
	var out []digest
	for _, t := range tokens {
		out = append(out, digest{sha256.Sum256([]byte(t.Secret)), t.Role})
	}
	return out
}

// everyone is what clients may do where there are no tokens: not drain, for any web page could ask for that.
const everyone = RoleRead | RoleEnv

// roleOf is what the holder of secret may do, 0 if it is no token.
func (s *Server) roleOf(secret string) Role {
	if len(s.tokens) == 0 {
		return everyone
	}
	sum := sha256.Sum256([]byte(secret))
	var role Role
	for i := range s.tokens {
		if subtle.ConstantTimeCompare(sum[:], s.tokens[i].sum[:]) == 1 {
			role |= s.tokens[i].role
		}
	}
	if role&RoleAdmin != 0 {
		role = RoleRead | RoleEnv | RoleAdmin
	}
	return role
}

// bearer is the token of a request's header, "" where there is none.
func bearer(r *http.Request) (token string, there bool) {
	h := r.Header.Get("Authorization")
	if h == "" {
		return "", false
	}
	kind, token, _ := strings.Cut(h, " ")
	if !strings.EqualFold(kind, "Bearer") {
		return "", true
	}
	return strings.TrimSpace(token), true
}

// needs lets requests through to h whose token has role, or all where there are no tokens.
func (s *Server) needs(role Role, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, _ := bearer(r)
		got := s.roleOf(token)
		if got == 0 {
			unauthorized(w)
			return
		}
		if got&role == 0 {
			http.Error(w, "this needs a token of role "+role.String()+", yours is "+got.String(), http.StatusForbidden)
			return
		}
		h(w, r)
	}
}

// unauthorized is the one answer to no token and to any wrong one.
func unauthorized(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	http.Error(w, "this server needs a token: Authorization: Bearer TOKEN", http.StatusUnauthorized)
}

// originAllowed says whether a web page of the request's origin may connect. Clients that are no browsers send none.
func (s *Server) originAllowed(r *http.Request) bool {
	list, there := r.Header["Origin"]
	if !there {
		return true
	}
	return len(list) == 1 && (slices.Contains(s.cfg.AllowOrigin, list[0]) || slices.Contains(s.cfg.AllowOrigin, "*"))
}
