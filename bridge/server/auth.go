package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"

	"clustergym/bridge/wire"
	"clustergym/internal/door"
)

// digest is the hash of a token. All digests have the same length, so comparing takes the same time for every token.
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

// everyone is what clients may do if the server has no tokens. Draining is excluded, since any web page could ask for
// it.
const everyone = RoleRead | RoleEnv

// roleOf returns what the holder of secret may do, 0 if it is not a token.
func (s *Server) roleOf(secret string) Role {
	tokens := s.secrets.Load().tokens
	if len(tokens) == 0 {
		return everyone
	}
	sum := sha256.Sum256([]byte(secret))
	var role Role
	for i := range tokens {
		if subtle.ConstantTimeCompare(sum[:], tokens[i].sum[:]) == 1 {
			role |= tokens[i].role
		}
	}
	if role&RoleAdmin != 0 {
		role = RoleRead | RoleEnv | RoleAdmin
	}
	return role
}

// bearer returns the token of a request's Authorization header. there says whether the request has that header.
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

// needs passes a request to h if its token has role, or if the server has no tokens.
func (s *Server) needs(role Role, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, _ := bearer(r)
		got := s.roleOf(token)
		if got == 0 {
			s.refuse(w, r)
			return
		}
		if got&role == 0 {
			http.Error(w, "this needs a token of role "+role.String()+", yours is "+got.String(), http.StatusForbidden)
			return
		}
		if s.vouched(r, token != "") {
			door.PlaceOf(r).Vouch()
		}
		h(w, r)
	}
}

// vouched reports whether a client is known to this server: by a valid token, if it has shown one, or by a certificate.
func (s *Server) vouched(r *http.Request, token bool) bool {
	return token && len(s.cfg.Tokens) > 0 || r.TLS != nil && len(r.TLS.VerifiedChains) > 0
}

// refuse answers a missing or wrong token, and counts and logs it.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request) {
	s.met.failed(wire.Unauthorized)
	s.warn(warnToken, "client", r.RemoteAddr, "path", r.URL.Path)
	unauthorized(w)
}

// unauthorized answers a missing and any wrong token in the same words.
func unauthorized(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	http.Error(w, "this server needs a token: Authorization: Bearer TOKEN", http.StatusUnauthorized)
}

// originAllowed reports whether a web page of the request's origin may connect. Only browsers send an origin.
func (s *Server) originAllowed(r *http.Request) bool {
	list, there := r.Header["Origin"]
	if !there {
		return true
	}
	return len(list) == 1 && (slices.Contains(s.cfg.AllowOrigin, list[0]) || slices.Contains(s.cfg.AllowOrigin, "*"))
}
