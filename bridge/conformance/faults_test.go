package conformance

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/server"
	"clustergym/bridge/wire"
)

// set returns a liar that sets key to v in every reply to op.
func set(op, key string, v any) *liar {
	return change(op, func(_ *link, m wire.Map) wire.Map { return merge(m, wire.Map{{Key: key, Value: v}}) })
}

// pictures returns a liar that replaces the k-th reply to a render of pixels by one of the given shape.
func pictures(shape func(k int) []int) *liar {
	var k atomic.Int32
	return change(wire.OpRender, func(_ *link, m wire.Map) wire.Map {
		if _, ok := m.Get("render").(wire.Array); !ok {
			return m
		}
		a := wire.Array{DType: wire.U8, Shape: shape(int(k.Add(1)))}
		a.Data = make([]byte, a.Len())
		return merge(m, wire.Map{{Key: "render", Value: a}})
	})
}

// without returns a liar that removes key from every reply to op.
func without(op, key string) *liar {
	return change(op, func(_ *link, m wire.Map) wire.Map { return lacking(m, key) })
}

func lacking(m wire.Map, key string) wire.Map {
	return slices.DeleteFunc(slices.Clone(m), func(p wire.Pair) bool { return p.Key == key })
}

func change(op string, f func(*link, wire.Map) wire.Map) *liar {
	return &liar{reply: func(l *link, m wire.Map) []wire.Map {
		if got, _ := m.Str("op", ""); got == op || op == "" {
			m = f(l, m)
		}
		return []wire.Map{m}
	}}
}

// busy returns a function that makes a reply an error busy.
func busy(retry bool) func(*link, wire.Map) wire.Map {
	return func(_ *link, m wire.Map) wire.Map {
		return wire.Map{{Key: "re", Value: m.Get("re")}, {Key: "op", Value: wire.OpError},
			{Key: "code", Value: string(wire.Busy)},
			{Key: "msg", Value: "too many"}, {Key: "retry", Value: retry}}
	}
}

// inInfo returns a liar that changes the info of every reply to op, and the info of its fin.
func inInfo(op string, f func(info wire.Map) wire.Map) *liar {
	return change(op, func(_ *link, m wire.Map) wire.Map {
		if info, _ := m.Sub("info"); info != nil {
			m = merge(m, wire.Map{{Key: "info", Value: f(info)}})
		}
		if fin, _ := m.Sub("fin"); fin != nil {
			if info, _ := fin.Sub("info"); info != nil {
				m = merge(m, wire.Map{{Key: "fin", Value: merge(fin, wire.Map{{Key: "info", Value: f(info)}})}})
			}
		}
		return m
	})
}

// code returns a liar that replaces the code of errors.
func code(from, to wire.Code) *liar {
	return change(wire.OpError, func(_ *link, m wire.Map) wire.Map {
		if m.Get("code") == string(from) {
			m = merge(m, wire.Map{{Key: "code", Value: string(to)}})
		}
		return m
	})
}

// closing returns a liar that replaces the code and reason of close frames.
func closing(from, to int, text string) *liar {
	return &liar{close: func(code int, reason string) (int, string) {
		if code == from {
			return to, text
		}
		return code, reason
	}}
}

// eachF64 returns an array with its numbers changed by f.
func eachF64(a any, f func(i int, x float64) float64) any {
	v, ok := a.(wire.Array)
	if !ok || v.DType != wire.F64 {
		return a
	}
	v.Data = slices.Clone(v.Data)
	for i := range v.Len() {
		binary.LittleEndian.PutUint64(v.Data[8*i:], math.Float64bits(f(i, v.Float(i))))
	}
	return v
}

func inObs(op string, f func(a wire.Array) wire.Array) *liar {
	return change(op, func(_ *link, m wire.Map) wire.Map {
		obs, _ := m.Get("obs").(wire.Map)
		out := slices.Clone(obs)
		for i := range out {
			if a, ok := out[i].Value.(wire.Array); ok && a.DType == wire.F32 {
				out[i].Value = f(a)
			}
		}
		return merge(m, wire.Map{{Key: "obs", Value: out}})
	})
}

// twice returns a liar that makes the server execute a request again that is repeated after a resume, by giving it a
// new id.
func twice() *liar {
	return &liar{
		request: func(l *link, m wire.Map) wire.Map {
			id, _ := m.Int("id", 0, 0, 1<<32-1)
			l.bags.Lock()
			defer l.bags.Unlock()
			if op, _ := m.Str("op", ""); op == wire.OpHello {
				return shifted(m, l.bags.offset)
			}
			if h, _ := m.Int("h", 0, 0, 1<<31); l.resume && l.count == 0 && h > 0 {
				l.count, l.offset = 1, l.bags.offset+1
				l.bags.offset = l.offset
			} else if l.count == 0 && l.resume {
				l.offset = l.bags.offset
			}
			return merge(m, wire.Map{{Key: "id", Value: id + l.offset}})
		},
		reply: func(l *link, m wire.Map) []wire.Map {
			re, _ := m.Int("re", 0, 0, 1<<32-1)
			if re > l.offset && re > 1 {
				m = merge(m, wire.Map{{Key: "re", Value: re - l.offset}})
			}
			return []wire.Map{m}
		},
	}
}

// shifted returns a hello whose acknowledgements have the server's ids.
func shifted(m wire.Map, offset int64) wire.Map {
	r, _ := m.Sub("resume")
	last, _ := r.Sub("last")
	if len(last) == 0 {
		return m
	}
	out := wire.Map{}
	for _, p := range last {
		id, _ := p.Value.(int64)
		out = append(out, wire.Pair{Key: p.Key, Value: id + offset})
	}
	return merge(m, wire.Map{{Key: "resume", Value: merge(r, wire.Map{{Key: "last", Value: out}})}})
}

// TestEveryFaultIsFound breaks the protocol in one way at a time; the claim named must fail.
func TestEveryFaultIsFound(t *testing.T) {
	for _, c := range []struct {
		fault, claim string
		lie          *liar
	}{
		{"no limits", "welcome is complete", without(wire.OpWelcome, "limits")},
		{"no session", "welcome is complete", set(wire.OpWelcome, "session", nil)},
		{"a short secret", "welcome is complete", set(wire.OpWelcome, "resume", "12345")},
		{"features out of nowhere", "unknown keys and features are ignored", set(wire.OpWelcome, "feat", []string{"warp"})},
		{"another code for a bad hello", "a bad hello closes the connection", closing(4400, 1000, "bye")},
		{"another code for versions", "hello needs a version and an encoding in common",
			closing(4406, 4400, "1 to 1, 7 to 9")},
		{"a reason that does not say both versions", "hello needs a version and an encoding in common",
			closing(4406, 4406, "too old")},
		{"no reason", "a late hello closes the connection", closing(4408, 4408, "")},
		{"another code for a wrong token", "a missing or wrong token is refused", closing(4401, 4400, "what?")},
		{"another code for text", "a message of the wrong websocket type closes the connection",
			closing(1003, 1002, "what?")},
		{"unreadable frames have numbers", "unreadable frames are reported, and three in a row close the connection",
			change(wire.OpError, func(_ *link, m wire.Map) wire.Map {
				return merge(m, wire.Map{{Key: "re", Value: 3}})
			})},
		{"unreadable frames for ever", "unreadable frames are reported, and three in a row close the connection",
			closing(1002, 1000, "")},
		{"another word for unreadable", "malformed values and false lengths are refused",
			code(wire.BadFrame, wire.BadRequest)},
		{"another code for too large", "an oversize message closes the connection", closing(1009, 1011, "")},
		{"ids are forgiven", "request ids must increase", code(wire.BadRequest, wire.Internal)},
		{"an answer is lost", "every request is answered once, in order", &liar{reply: func(l *link, m wire.Map) []wire.Map {
			if l.count++; l.count%9 == 0 {
				return nil
			}
			return []wire.Map{m}
		}}},
		{"an answer comes twice", "every request is answered once, in order",
			&liar{reply: func(l *link, m wire.Map) []wire.Map {
				if l.count++; l.count%20 == 0 {
					return []wire.Map{m, m}
				}
				return []wire.Map{m}
			}}},
		{"answers change places", "every request is answered once, in order",
			&liar{reply: func(l *link, m wire.Map) []wire.Map {
				if h, _ := l.fields.Int("h", 0, 0, 1<<31); h != 1 || m.Get("op") != wire.OpStep {
					return []wire.Map{m}
				}
				if l.held = append(l.held, m); len(l.held) < 2 {
					return nil
				}
				two := []wire.Map{l.held[1], l.held[0]}
				l.held = nil
				return two
			}}},
		{"busy requests are not to be tried again", "requests beyond the limit inflight are busy",
			change(wire.OpStep, busy(false))},
		{"busy requests have an effect", "requests beyond the limit inflight are busy",
			change(wire.OpStep, func(l *link, m wire.Map) wire.Map {
				if l.count++; l.count == 3 {
					return busy(true)(l, m)
				}
				return m
			})},
		{"unknown operations are bad requests", "unknown operations are refused", code(wire.UnknownOp, wire.BadHandle)},
		{"a ping without its t", "unknown operations are refused", set(wire.OpPing, "t", 1)},
		{"bye with another code", "bye ends the session", closing(1000, 1001, "gone")},
		{"a fault of open without the field's name", "open checks its fields",
			change(wire.OpError, func(_ *link, m wire.Map) wire.Map {
				return lacking(lacking(merge(m, wire.Map{{Key: "msg", Value: "no"}}), "want"), "got")
			})},
		{"a spec without its scenario", "handles open and close", change(wire.OpOpen, func(_ *link, m wire.Map) wire.Map {
			spec, _ := m.Sub("spec")
			return merge(m, wire.Map{{Key: "spec", Value: lacking(spec, "scenario_sha")}})
		})},
		{"closed handles are forgiven", "handles open and close", code(wire.BadHandle, wire.Internal)},
		{"another word for capacity", "the limits handles and envs hold", code(wire.Capacity, wire.Internal)},
		{"another code for a full server", "a vanished client frees its session", closing(4429, 1000, "")},
		{"needs_reset without names", "a step needs a reset first", without(wire.OpError, "env")},
		{"resets without masks", "a reset begins an episode",
			inInfo(wire.OpReset, func(info wire.Map) wire.Map { return lacking(info, wire.MaskKey) })},
		{"ids are not echoed", "a partial reset leaves the other environments alone", without(wire.OpReset, "ids")},
		{"another word for bad rows", "bad ids and masks of rows are refused", code(wire.BadRequest, wire.BadHandle)},
		{"another word for bad seeds", "bad seeds are refused", code(wire.BadSeed, wire.BadRequest)},
		{"drawn seeds are kept secret", "seeds decide the episodes",
			inInfo(wire.OpReset, func(info wire.Map) wire.Map { return lacking(info, "seed") })},
		{"seeds are not added to", "seeds decide the episodes", &liar{request: func(_ *link, m wire.Map) wire.Map {
			if m.Get("seed") == int64(100) {
				m = merge(m, wire.Map{{Key: "seed", Value: []int{100, 100, 100}}})
			}
			return m
		}}},
		{"bad actions without names", "bad actions change nothing", without(wire.OpError, "env")},
		{"bad actions are forgiven", "bad actions change nothing", code(wire.BadAction, wire.BadRequest)},
		{"replaced actions are not told", "masked actions follow the field invalid",
			inInfo(wire.OpStep, func(info wire.Map) wire.Map { return lacking(info, "invalid") })},
		{"no penalty", "masked actions follow the field invalid", &liar{request: func(_ *link, m wire.Map) wire.Map {
			if m.Get("invalid") == "penalty" {
				m = lacking(merge(m, wire.Map{{Key: "invalid", Value: "noop"}}), "kwargs")
			}
			return m
		}}},
		{"observations outside their space", "observations are inside their space",
			inObs(wire.OpStep, func(a wire.Array) wire.Array {
				a.Data = slices.Clone(a.Data)
				binary.LittleEndian.PutUint32(a.Data, math.Float32bits(1e30))
				return a
			})},
		{"shared observations are looked for elsewhere", "shared memory has what would be sent",
			change(wire.OpOpen, func(_ *link, reply wire.Map) wire.Map {
				told, _ := reply.Sub("shm")
				where, _ := told.Sub("at")
				if len(where) == 0 {
					return reply
				}
				where = merge(where, m(where[0].Key, 1))
				return merge(reply,
					m("shm", merge(told, m("at", where, "row", 1+told.Get("row").(int64), "size", told.Get("size").(int64)))))
			})},
		{"shared observations are sent as well", "shared memory has what would be sent",
			change(wire.OpStep, func(_ *link, reply wire.Map) wire.Map {
				if reply.Get("obs") != nil {
					return reply
				}
				k := reply.Get("r").(wire.Array).Len()
				return merge(reply, m("obs", m("obs", compare.Array(wire.F32, make([]int, k), k))))
			})},
		{"observations of another type", "observations are inside their space",
			inObs(wire.OpStep, func(a wire.Array) wire.Array {
				return compare.Array(wire.F64, make([]int, a.Len()), a.Shape...)
			})},
		{"spaces without order", "observations are inside their space",
			change(wire.OpOpen, func(_ *link, reply wire.Map) wire.Map {
				sp, _ := reply.Sub("obs_space")
				k, _ := sp.Get("k").([]any)
				k = append([]any{[]any{"zzz", m("t", "mbinary", "shape", []int{1})}}, k...)
				return merge(reply, m("obs_space", merge(sp, m("k", k))))
			})},
		{"masks of another type", "a reset begins an episode", inInfo(wire.OpReset, func(info wire.Map) wire.Map {
			a, _ := info.Get(wire.MaskKey).(wire.Array)
			a.DType = wire.U8
			return merge(info, wire.Map{{Key: wire.MaskKey, Value: a}})
		})},
		{"NaN in info", "info has what open asked for", inInfo(wire.OpStep, func(info wire.Map) wire.Map {
			return append(slices.Clone(info), wire.Pair{Key: "x", Value: math.NaN()})
		})},
		{"episodes are a step too long", "info has what open asked for", inInfo(wire.OpStep, func(info wire.Map) wire.Map {
			ep, _ := info.Sub("episode")
			if ep == nil {
				return info
			}
			l, _ := ep.Get("l").(wire.Array)
			l.Data = slices.Clone(l.Data)
			l.Data[0]++
			return merge(info, wire.Map{{Key: "episode", Value: merge(ep, wire.Map{{Key: "l", Value: l}})}})
		})},
		{"metrics in every step", "info has what open asked for", inInfo(wire.OpStep, func(info wire.Map) wire.Map {
			if info.Has("last_reward") || info.Has("episode") {
				return info
			}
			return append(slices.Clone(info), wire.Pair{Key: "last_reward", Value: compare.Array(wire.F64, []int{1, 1}, 2)},
				wire.Pair{Key: "_last_reward", Value: compare.Array(wire.Bool, []int{1, 1}, 2)})
		})},
		{"no metrics", "info has what open asked for", inInfo(wire.OpStep, func(info wire.Map) wire.Map {
			return lacking(lacking(info, "last_reward"), "_last_reward")
		})},
		{"episodes among metrics", "info has what open asked for", change("", func(l *link, m wire.Map) wire.Map {
			info, _ := m.Sub("info")
			if !info.Has("last_reward") || info.Has("episode") {
				return m
			}
			return merge(m,
				wire.Map{{Key: "info", Value: append(slices.Clone(info), wire.Pair{Key: "episode", Value: wire.Map{}})}})
		})},
		{"terminated and truncated", "info has what open asked for", change(wire.OpStep, func(_ *link, m wire.Map) wire.Map {
			return merge(m, wire.Map{{Key: "te", Value: m.Get("tr")}})
		})},
		{"the first step pays", "autoreset next_step shows the last observation, then the first",
			change(wire.OpStep, func(_ *link, m wire.Map) wire.Map {
				return merge(m, wire.Map{{Key: "r", Value: eachF64(m.Get("r"), func(_ int, x float64) float64 {
					if x == 0 {
						return 1e-9
					}
					return x
				})}})
			})},
		{"no fin", "autoreset same_step shows both at once", without(wire.OpStep, "fin")},
		{"fin shows the next episode", "autoreset same_step shows both at once",
			change(wire.OpStep, func(_ *link, m wire.Map) wire.Map {
				fin, _ := m.Sub("fin")
				if fin == nil {
					return m
				}
				ids, _ := fin.Ints("ids")
				obs, _ := m.Get("obs").(wire.Map)
				out := slices.Clone(obs)
				for i := range out {
					a := out[i].Value.(wire.Array)
					b := wire.Array{DType: a.DType, Shape: append([]int{len(ids)}, a.Shape[1:]...)}
					each := len(a.Data) / a.Shape[0]
					for _, r := range ids {
						b.Data = append(b.Data, a.Data[int(r)*each:(int(r)+1)*each]...)
					}
					out[i].Value = b
				}
				return merge(m, wire.Map{{Key: "fin", Value: merge(fin, wire.Map{{Key: "obs", Value: out}})}})
			})},
		{"ended environments step", "autoreset disabled waits for a reset", code(wire.NeedsReset, wire.EnvFault)},
		{"rewards are rounded in JSON", "all encodings give the same values",
			change(wire.OpStep, func(l *link, m wire.Map) wire.Map {
				if l.enc != wire.JSON {
					return m
				}
				c, _ := compare.Read(m.Get("r"))
				var r []any
				for _, x := range c.V {
					r = append(r, math.Round(x*4)/4+0.5)
				}
				return merge(m, wire.Map{{Key: "r", Value: r}})
			})},
		{"rewards depend on the number of rows", "a row does not depend on its batch",
			change(wire.OpStep, func(_ *link, m wire.Map) wire.Map {
				return merge(m,
					wire.Map{{Key: "r", Value: eachF64(m.Get("r"), func(i int, x float64) float64 { return x + float64(i)*1e-12 })}})
			})},
		{"send says too much", "send and recv give what step gives", set(wire.OpSend, "x", 1)},
		{"recv when nothing is out", "send and recv give what step gives", code(wire.NotPending, wire.BadRequest)},
		{"recv mixes rows up", "send and recv give what step gives", change(wire.OpRecv, func(_ *link, m wire.Map) wire.Map {
			ids, _ := m.Ints("ids")
			if len(ids) == 2 {
				m = merge(m, wire.Map{{Key: "ids", Value: []any{ids[1], ids[0]}}})
			}
			return m
		})},
		{"snapshots are forgotten", "a restored snapshot continues identically",
			&liar{request: func(_ *link, m wire.Map) wire.Map {
				if m.Get("op") == wire.OpRestore {
					m = wire.Map{{Key: "op", Value: wire.OpReset}, {Key: "id", Value: m.Get("id")}, {Key: "h", Value: m.Get("h")},
						{Key: "seed", Value: 1}}
				}
				return m
			}, reply: func(l *link, m wire.Map) []wire.Map {
				if m.Get("op") == wire.OpReset && l.fields.Get("op") == wire.OpRestore {
					m = merge(m, wire.Map{{Key: "op", Value: wire.OpRestore}})
				}
				return []wire.Map{m}
			}}},
		{"any blob will do", "a damaged snapshot changes nothing", &liar{request: func(l *link, m wire.Map) wire.Map {
			l.bags.Lock()
			defer l.bags.Unlock()
			if m.Get("op") == wire.OpRestore && l.bags.blob != nil {
				m = merge(m, wire.Map{{Key: "blob", Value: l.bags.blob}})
			}
			return m
		}, reply: func(l *link, m wire.Map) []wire.Map {
			l.bags.Lock()
			defer l.bags.Unlock()
			if b, ok := m.Get("blob").([]byte); ok {
				l.bags.blob = slices.Clone(b)
			}
			return []wire.Map{m}
		}}},
		{"calls of anything", "only listed methods can be called", code(wire.BadRequest, wire.Internal)},
		{"pictures of nothing", "render gives text or pixels", set(wire.OpRender, "render", []string{""})},
		{"text instead of pixels", "render gives text or pixels", set(wire.OpRender, "render", []string{"text"})},
		{"pixels instead of text", "render gives text or pixels",
			set(wire.OpRender, "render", wire.Array{DType: wire.U8, Shape: []int{1, 2, 2, 3}, Data: make([]byte, 12)})},
		{"pictures of no size", "render gives text or pixels", pictures(func(int) []int { return []int{1, 0, 0, 3} })},
		{"pictures with a fourth colour", "render gives text or pixels",
			pictures(func(int) []int { return []int{1, 2, 2, 4} })},
		{"pictures that grow", "render gives text or pixels", pictures(func(k int) []int { return []int{1, 2 * k, 2, 3} })},
		{"a new session instead of the old", "a lost session can be resumed",
			&liar{request: func(_ *link, m wire.Map) wire.Map { return lacking(m, "resume") }}},
		{"a repeated step is done again", "a repeated step is done once", twice()},
		{"another code for those taken over", "a second connection takes the session over", closing(4409, 1000, "")},
		{"unknown sessions are told apart", "an ended session cannot be resumed",
			&liar{close: func() func(int, string) (int, string) {
				var n atomic.Int32
				return func(code int, text string) (int, string) {
					if code == 4410 {
						text += " " + string('a'+n.Add(1))
					}
					return code, text
				}
			}()}},
	} {
		t.Run(c.fault, func(t *testing.T) {
			url := serve(t, func(cfg *server.Config) {
				cfg.Tokens = []server.Token{{Role: server.RoleEnv, Secret: "s3cret"}}
				cfg.HelloTimeout = 100 * time.Millisecond
			})
			target := Target{URL: c.lie.serve(t, url), Token: "s3cret", Env: "InvalidAction-v1",
				HelloTimeout: 100 * time.Millisecond, Wait: 300 * time.Millisecond}
			found := false
			for _, claim := range claims {
				if claim.name != c.claim {
					continue
				}
				found = true
				err := verify(t.Context(), target, claim.check)
				var skipped skip
				if err == nil || errors.As(err, &skipped) {
					t.Errorf("the suite did not notice (%v)", err)
				}
			}
			if !found {
				t.Errorf("there is no claim %q", c.claim)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		url := serve(t, func(cfg *server.Config) { cfg.HelloTimeout = 100 * time.Millisecond })
		honest := &liar{}
		for _, claim := range claims {
			if claim.name == "a vanished client frees its session" || claim.name == "an oversize message closes the connection" {
				continue // the liar does not pass on an end without a close frame
			}
			err := verify(t.Context(),
				Target{URL: honest.serve(t, url), Env: "InvalidAction-v1", HelloTimeout: 100 * time.Millisecond}, claim.check)
			var skipped skip
			if err != nil && !errors.As(err, &skipped) {
				t.Errorf("%s, through a proxy that does not lie: %v", claim.name, err)
			}
		}
	})
}
