package server

import (
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"

	"clustergym/bridge/handle"
	"clustergym/bridge/wire"
	"clustergym/internal/plain"
)

const serverName = "clustergym"

// The reasons of close frames. Each says what to do, in at most 123 bytes.
const (
	notNow       = "the server is ending: connect again in a while, or to another one"
	unauthorised = "send a valid token, as Authorization: Bearer TOKEN or as auth in hello"
	expired      = "no such session, or it has ended: say hello without resume to begin a new one"
	taken        = "another connection resumed this session: go on there"
	full         = "all sessions are taken: close one, or connect again in a while"
	drained      = "the server ended while this session went on: connect again later"
	parting      = "bye"
)

// greeting holds what hello asks for.
type greeting struct {
	role    Role
	feat    features
	offered []string    // encodings
	resume  *resumption // nil = a new session
}

// resumption holds the field resume of hello, which asks for a session that lost its connection.
type resumption struct {
	session, token string
	last           map[uint32]uint32 // the last reply received, by handle
}

// hello answers the first message b with a welcome, or shuts the connection.
func (c *conn) hello(b []byte) (*session, error) {
	m, e := c.dec.Decode(b)
	if e != nil {
		return nil, c.shut(wire.CloseBadHello, "the first message cannot be read: "+e.Msg)
	}
	g, err := c.greet(m)
	if err != nil {
		return nil, err
	}
	if c.srv.draining.Load() {
		return nil, c.shut(wire.CloseNotNow, notNow)
	}
	c.place.Settle()
	var s *session
	if g.resume != nil {
		if s, err = c.srv.resume(c, g); err != nil {
			return nil, err
		}
	} else {
		s = c.srv.begin(c, g)
		if s == nil {
			if c.srv.draining.Load() {
				return nil, c.shut(wire.CloseNotNow, notNow)
			}
			return nil, c.shut(wire.CloseCapacity, full)
		}
	}
	c.greeted.Store(true)
	c.own = c.log.With("session", s.id)
	client, _ := m.Get("client").(wire.Map)
	c.own.Info("session", "resumed", g.resume != nil, "client_name", named(client, "name"), "client_version",
		named(client, "version"),
		"client_lang", named(client, "lang"), "enc", c.enc.String())
	return s, nil
}

// mostName is the length at which what a client says about itself is cut.
const mostName = 64

// named returns a string that a client says about itself, for the log.
func named(client wire.Map, key string) string {
	s, _ := client.Get(key).(string)
	return plain.Clip(s, mostName)
}

// greet reads hello. It shuts the connection if anything is wrong with it.
func (c *conn) greet(m wire.Map) (*greeting, error) {
	bad := func(e *wire.Error) error {
		return c.shut(wire.CloseBadHello, "hello: "+e.Error())
	}
	f := wire.Fields{Map: m}
	op, id := f.Str("op", ""), f.Int("id", 0, 0, math.MaxUint32)
	if f.Err != nil {
		return nil, bad(f.Err)
	}
	if op != wire.OpHello || id != 1 {
		return nil, c.shut(wire.CloseBadHello,
			fmt.Sprintf("begin with op hello and id 1, not with op %.40q and id %d", op, id))
	}
	g := &greeting{role: c.role}
	if g.role == 0 {
		token := f.Str("auth", "")
		if f.Err != nil {
			return nil, bad(f.Err)
		}
		switch g.role = c.srv.roleOf(token); {
		case g.role == 0:
			c.srv.met.failed(wire.Unauthorized)
			c.srv.warn(warnToken, "client", c.ws.RemoteAddr().String(), "path", "hello")
			return nil, c.shut(wire.CloseUnauthorized, unauthorised)
		case g.role&RoleEnv == 0:
			return nil, c.shut(wire.CloseUnauthorized, "sessions need a token of role env, yours is "+g.role.String())
		}
	}
	proto := f.Ints("proto")
	if f.Err != nil {
		return nil, bad(f.Err)
	}
	if len(proto) != 2 || proto[0] > proto[1] {
		return nil, c.shut(wire.CloseBadHello, "hello: proto is [least, most], the versions that the client speaks")
	}
	if proto[0] > wire.Proto || proto[1] < wire.Proto {
		return nil, c.shut(wire.CloseNoVersion,
			fmt.Sprintf("the client speaks protocol %d to %d, this server %d to %d: update the older one",
				proto[0], proto[1], wire.Proto, wire.Proto))
	}
	g.offered = f.Strs("enc", []string{c.enc.String()})
	feat := f.Strs("feat", nil)
	g.resume = readResume(&f)
	if f.Err != nil {
		return nil, bad(f.Err)
	}
	if !c.choose(g.offered) {
		return nil, c.shut(wire.CloseNoVersion,
			fmt.Sprintf("no common encoding in %.40q: ask for ext or mpnp in %s, json in %s",
				g.offered, wire.SubMsgpack, wire.SubJSON))
	}
	for i, name := range featureNames {
		if slices.Contains(feat, name) {
			g.feat |= 1 << i
		}
	}
	if c.srv.cfg.ResumeWindow == 0 {
		g.feat &^= featResume
	}
	if _, ok := c.srv.factory.(handle.Simulations); !ok {
		g.feat &^= featSchedule
	}
	if g.feat&featShm != 0 && (c.enc == wire.JSON || !c.srv.mayShare(c.ws.RemoteAddr())) {
		g.feat &^= featShm
	}
	return g, nil
}

// choose takes the first offered encoding that fits the connection's subprotocol.
func (c *conn) choose(offered []string) bool {
	for _, name := range offered {
		enc, ok := wire.EncodingNamed(name)
		if ok && (enc == wire.JSON) == (c.enc == wire.JSON) {
			if enc != c.enc {
				c.enc = enc
				c.dec = wire.NewDecoder(enc, c.srv.cfg.limits())
			}
			return true
		}
	}
	return false
}

// readResume reads the field resume. It returns nil if the message has no such field.
func readResume(hello *wire.Fields) *resumption {
	f := wire.Fields{Map: hello.Sub("resume")}
	if f.Map == nil {
		return nil
	}
	out := &resumption{session: f.Str("session", ""), token: f.Str("token", ""), last: map[uint32]uint32{}}
	for _, p := range f.Sub("last") {
		h, err := strconv.ParseUint(p.Key, 10, 32)
		id, ok := p.Value.(int64)
		if err != nil || !ok || id < 0 || id > math.MaxUint32 {
			f.Fail(wire.Errorf(wire.BadRequest, "resume.last maps handles, as decimal strings, to request ids"))
			break
		}
		out.last[uint32(h)] = uint32(id)
	}
	hello.Fail(f.Err)
	return out
}

// welcome writes the reply to hello.
func (s *session) welcome(w *wire.Writer) []byte {
	cfg := &s.srv.cfg
	m := wire.MapOf(
		"proto", wire.Proto,
		"server", wire.MapOf("name", serverName, "version", cfg.Version, "commit", cfg.Commit),
		"enc", s.enc.String(), "feat", s.feat.names(), "session", s.id,
	)
	resume := 0.0
	if s.feat&featResume != 0 {
		m.Add("resume", s.token)
		resume = cfg.ResumeWindow.Seconds()
	}
	if s.feat&featShm != 0 {
		m.Add("shm", s.srv.probe.Place())
	}
	m.Add("limits", wire.MapOf(
		"frame_in", cfg.MaxFrameIn, "frame_out", cfg.MaxFrameOut, "envs", cfg.MaxEnvs, "handles", cfg.MaxHandles,
		"inflight", cfg.MaxInflight, "sessions", cfg.MaxSessions, "idle_s", cfg.IdleTimeout.Seconds(), "resume_s", resume,
		"step_s", cfg.StepTimeout.Seconds(), "ping_s", cfg.PingInterval.Seconds(),
	))
	w.Reset()
	w.Answer(1, wire.OpWelcome, m)
	return w.Bytes()
}

// names returns the names of the features, in the order of their bits.
func (f features) names() []string {
	out := []string{}
	for i, name := range featureNames {
		if f&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	return out
}

// mayShare reports whether a client at addr can be offered memory. Only one on this machine can.
func (s *Server) mayShare(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback() && s.cfg.SharedMemory && s.probe.Possible()
}
