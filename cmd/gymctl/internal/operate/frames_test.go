package operate_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"clustergym/bridge/wire"
	"clustergym/cmd/gymctl/internal/clitest"
)

// Every frame of a session with the bridge keeps its bytes, in each encoding: descriptions of spaces, observations,
// ends of episodes, answers to calls, pictures and snapshots. Of the welcome only the keys are held, since it has the
// version and the session's secrets, and of errors the keys and the code, since they have sentences. The server signs
// snapshots with a key that follows from its token.
func TestFramesKeepTheirBytes(t *testing.T) {
	clitest.OneGoroutine(t)
	var lines []string
	clitest.Elsewhere(t, func() {
		const token = "0123456789abcdef0123456789abcdef"
		clitest.Write(t, "tokens", "admin "+token+"\n")
		s := serve(t, "--token-file", "tokens", "--workers", "2")
		trace := wire.Map{{Key: "synth", Value: wire.Map{{Key: "jobs", Value: 400}}}}
		small := wire.Map{{Key: "window", Value: 12}, {Key: "cluster", Value: "2x4"}, {Key: "trace", Value: trace}}
		seen := append(wire.Map{{Key: "visible", Value: 4}, {Key: "warm", Value: 8}}, small...)
		for _, enc := range []struct {
			sub string
			enc wire.Encoding
		}{{wire.SubMsgpack, wire.Ext}, {wire.SubMsgpack, wire.MPNP}, {wire.SubJSON, wire.JSON}} {
			for _, c := range []struct {
				name, id, autoreset string
				kwargs              wire.Map
				actions             int
			}{
				{"JobSelect", "JobSelect-v1", "next_step", append(wire.Map{{Key: "estimates", Value: "history"}}, seen...), 5},
				{"QueueRank", "QueueRank-v1", "same_step", wire.Map{{Key: "window", Value: 8}, {Key: "visible", Value: 4}}, 4},
				{"DelayOffer", "DelayOffer-v1", "disabled", wire.Map{{Key: "window", Value: 16}}, 2},
				{"WorkerPlace", "WorkerPlace-v1", "next_step", wire.Map{{Key: "jobs", Value: 4}, {Key: "servers", Value: 3}}, 2},
				{"DAGPlace", "DAGPlace-v1", "same_step", wire.Map{{Key: "tasks", Value: 6}, {Key: "gpus", Value: 3}}, 3},
				{"CartPole", "CartPole-v1", "next_step", nil, 2},
			} {
				talk := newTalk(t, s.addr, token, enc.sub, enc.enc)
				name := enc.enc.String() + " " + c.name
				line := func(what string, frame []byte) {
					if code, keys := talk.refusal(frame); code != "" {
						lines = append(lines, fmt.Sprintf("%s %s %s %s", name, what, code, keys))
						return
					}
					lines = append(lines, fmt.Sprintf("%s %s %d bytes %s", name, what, len(frame), clitest.Digest(string(frame))))
				}
				lines = append(lines, name+" welcome "+talk.hello())
				line("open",
					talk.ask(wire.OpOpen, "env", c.id, "n", 2, "kwargs", c.kwargs, "autoreset", c.autoreset, "invalid", "noop"))
				line("reset", talk.ask("reset", "h", 1, "seed", []any{5, 6}))
				var steps []byte
				for i := range 40 {
					steps = append(steps, talk.ask("step", "h", 1, "a", []any{i * 5 % 7 % c.actions, i * 3 % 5 % c.actions})...)
				}
				line("step", steps)
				line("snapshot", talk.ask("snapshot", "h", 1))
				line("masks", talk.ask("masks", "h", 1))
				line("render", talk.ask("render", "h", 1, "ids", []any{0}, "mode", "ansi"))
				line("picture", talk.ask("render", "h", 1, "ids", []any{1}, "mode", "rgb_array"))
				line("sample_tasks",
					talk.ask("call", "h", 1, "method", "sample_tasks", "args",
						wire.Map{{Key: "n", Value: 2}, {Key: "seed", Value: 7}}))
				line("metrics", talk.ask("call", "h", 1, "method", "metrics", "args", wire.Map{}))
				line("bad action", talk.ask("step", "h", 1, "a", []any{99, 0}))
				line("close", talk.ask("close", "h", 1))
				line("closed", talk.ask("step", "h", 1, "a", []any{0, 0}))
				talk.end()
			}
		}
	})
	clitest.Unchanged(t, "frames.txt", lines)
}

// talk is a connection whose frames are seen as they come.
type talk struct {
	t   *testing.T
	ws  *websocket.Conn
	enc wire.Encoding
	id  int
}

func newTalk(t *testing.T, addr, token, sub string, enc wire.Encoding) *talk {
	t.Helper()
	d := websocket.Dialer{Subprotocols: []string{sub}, HandshakeTimeout: clitest.Patience}
	ws, resp, err := d.DialContext(t.Context(), "ws://"+addr+"/v1/ws", http.Header{"Authorization": {"Bearer " + token}})
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return &talk{t: t, ws: ws, enc: enc}
}

// ask sends a request and returns the frame that answers it.
func (c *talk) ask(op string, pairs ...any) []byte {
	c.t.Helper()
	c.id++
	m := wire.Map{{Key: "op", Value: op}, {Key: "id", Value: c.id}}
	for i := 0; i < len(pairs); i += 2 {
		m = append(m, wire.Pair{Key: pairs[i].(string), Value: pairs[i+1]}) //nolint:forcetypeassert // keys come first
	}
	w := wire.NewWriter(c.enc)
	w.Value(m)
	kind := websocket.BinaryMessage
	if c.enc == wire.JSON {
		kind = websocket.TextMessage
	}
	if err := c.ws.SetReadDeadline(time.Now().Add(clitest.Patience)); err != nil {
		c.t.Fatal(err)
	}
	if err := c.ws.WriteMessage(kind, w.Bytes()); err != nil {
		c.t.Fatal(err)
	}
	got, frame, err := c.ws.ReadMessage()
	if err != nil || got != kind {
		c.t.Fatalf("%s: a message of kind %d, want %d (%v)", op, got, kind, err)
	}
	return frame
}

// refusal returns the code and the keys of an error, which is short, or "".
func (c *talk) refusal(frame []byte) (code, keys string) {
	if len(frame) > 1000 {
		return "", ""
	}
	m, e := wire.Decode(frame, c.enc, wire.DefaultLimits())
	if e != nil || m.Get("op") != wire.OpError {
		return "", ""
	}
	return fmt.Sprint(m.Get("code")), strings.Join(keysOf("", m), " ")
}

// hello begins the session and returns the keys of the welcome.
func (c *talk) hello() string {
	c.t.Helper()
	frame := c.ask(wire.OpHello, "proto", []any{1, 1}, "enc", []any{c.enc.String()}, "feat",
		[]any{"async", "resume", "snapshot", "render"})
	m, e := wire.Decode(frame, c.enc, wire.DefaultLimits())
	if e != nil {
		c.t.Fatal(e)
	}
	return strings.Join(keysOf("", m), " ")
}

// keysOf returns the keys of m and of the maps in it, in their order.
func keysOf(path string, m wire.Map) (keys []string) {
	for _, p := range m {
		keys = append(keys, path+p.Key)
		if inner, ok := p.Value.(wire.Map); ok {
			keys = append(keys, keysOf(path+p.Key+".", inner)...)
		}
	}
	return keys
}

func (c *talk) end() {
	if err := c.ws.Close(); err != nil {
		c.t.Error(err)
	}
}
