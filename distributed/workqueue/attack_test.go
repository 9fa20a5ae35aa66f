//go:build unix

package workqueue

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"clustergym/internal/packed"
)

// stranger is an attacker who has the token, for example through a compromised worker.
func stranger(t *testing.T, c *Coordinator) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := nats.Connect(c.URL(), nats.Token(testToken))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return nc, js
}

// A message in the queue can be replaced by one with the same digest. The worker computes the digest itself, and the
// coordinator publishes its own task once more.
func TestAReplacedTaskIsNotDone(t *testing.T) {
	t.Parallel()
	change := map[string]func(*queued){
		"input":      func(q *queued) { q.Input = json.RawMessage("13") },
		"kind":       func(q *queued) { q.Kind = "other" },
		"name":       func(q *queued) { q.Name = "\x1b]0;title\x07" },
		"needs":      func(q *queued) { q.Needs = map[string]string{"trace.file": strings.Repeat("0", 64)} },
		"a path":     func(q *queued) { q.Needs = map[string]string{"../../.ssh/authorized_keys": strings.Repeat("0", 64)} },
		"elsewhere":  func(q *queued) { q.Input, q.InputIn = nil, "input/"+strings.Repeat("0", 64) },
		"own object": func(q *queued) { q.Input, q.InputIn = nil, inputName(q.Digest) },
	}
	for name, change := range change {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := listen(t, Options{Tries: 1 << 20})
			task := square(12)
			end := background(t, c, task)
			nc, js := stranger(t, c)
			stream, err := js.Stream(t.Context(), c.job.workStream())
			if err != nil {
				t.Fatal(err)
			}
			subject := c.job.work(task.Digest)
			var m *jetstream.RawStreamMsg
			until(t, "published", func() bool { m, err = stream.GetLastMsgForSubject(t.Context(), subject); return err == nil })
			var q queued
			if err := json.Unmarshal(m.Data, &q); err != nil {
				t.Fatal(err)
			}
			change(&q)
			if strings.HasPrefix(q.InputIn, "input/"+task.Digest) {
				objects, err := js.ObjectStore(t.Context(), c.job.bucket())
				if err == nil {
					_, err = objects.PutBytes(t.Context(), q.InputIn, []byte("13"))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject(subject)); err != nil {
				t.Fatal(err)
			}
			if _, err := js.Publish(t.Context(), subject, encode(q)); err != nil {
				t.Fatal(err)
			}
			if err := nc.Flush(); err != nil {
				t.Fatal(err)
			}
			said, _, _ := start(t, WorkOptions{URL: c.URL(), Name: "a"})
			if q.InputIn == inputName(task.Digest) { // it is a failure of the task, whose message comes again and again
				until(t, "refused", func() bool { return said.has("not that of its kind, name, input and needs") })
				return
			}
			if o := within(t, end); o.err != nil || string(o.r.Value) != "144" {
				t.Errorf("got %s, %v; the worker says\n%s", o.r.Value, o.err, said.text())
			}
			if !said.has("is no task of its coordinator") || strings.ContainsAny(said.text(), "\x1b\x07") {
				t.Errorf("the worker says\n%q", said.text())
			}
		})
	}
}

// A task's name appears on the worker's terminal and on every terminal that shows the status.
func TestNamesReachNoTerminalWithEscapes(t *testing.T) {
	t.Parallel()
	c, told := listen(t, Options{Tries: 1})
	said, _, _ := start(t, WorkOptions{URL: c.URL(), Name: "a"})
	o := within(t, background(t, c, newTask("fail", "\x1b[2Jcell\r\x07", nil)))
	if o.err == nil || !said.has("\ufffd[2Jcell") || strings.ContainsAny(said.text()+told.text(), "\x1b\r\x07") {
		t.Errorf("%v: the worker says %q, the coordinator %q", o.err, said.text(), told.text())
	}
	s := Status{Job: "\x1b[1m", Workers: []WorkerStatus{{Name: "\x07", Tasks: []TaskStatus{{Name: "\x1b]0;x"}}}},
		Own: []TaskStatus{{Name: "\u202e"}}, Lost: []LostWorker{{Why: "\x1b", Tasks: []string{"\x1b"}}}}
	s.clean()
	if text := string(encode(s)); strings.Contains(text, `\u00`) || strings.Contains(text, "\u202e") {
		t.Errorf("got %s", text)
	}
}

// A result names its folder and its value in the store, and both are removed with it.
func TestAResultNamesOnlyWhatIsItsOwn(t *testing.T) {
	t.Parallel()
	c, said := listen(t, Options{})
	_, js := stranger(t, c)
	task := square(3)
	end := background(t, c, task)
	precious := strings.Repeat("1", 64)
	if err := c.store.putBytes(t.Context(), precious, []byte("what a task needs")); err != nil {
		t.Fatal(err)
	}
	for _, s := range []stored{
		{Result: Result{Digest: task.Digest, Value: json.RawMessage("0"), Proof: "p", Worker: "w", Files: precious}},
		{Result: Result{Digest: task.Digest, Value: json.RawMessage("0"), Proof: "p", Worker: "w",
			Files: filesName(precious, precious)}},
		{Result: Result{Digest: task.Digest, Proof: "p", Worker: "w"}, ValueIn: precious},
		{Result: Result{Digest: precious, Value: json.RawMessage("0"), Proof: "p", Worker: "w"}},
		{Result: Result{Digest: task.Digest, Value: json.RawMessage("0"), Proof: "p", Worker: "../w"}},
	} {
		if _, err := js.Publish(t.Context(), c.job.done(task.Digest), encode(s)); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "ignored", func() bool { return strings.Count(said.text(), "ignored") == 5 })
	start(t, WorkOptions{URL: c.URL(), Name: "a"})
	if o := within(t, end); o.err != nil || string(o.r.Value) != "9" {
		t.Errorf("got %s, %v", o.r.Value, o.err)
	}
	if ok, err := c.store.has(t.Context(), precious); err != nil || !ok {
		t.Errorf("what another task needs is gone: %v", err)
	}
}

// The coordinator hands a task back by publishing to a subject that a worker named.
func TestTheCoordinatorPublishesOnlyToAcknowledgements(t *testing.T) {
	t.Parallel()
	c, _ := listen(t, Options{Tries: 100})
	nc, _ := stranger(t, c)
	bye, err := nc.SubscribeSync(c.job.subject("bye"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Request(helloSubject, encode(hello{Protocol: protocol, Worker: "w", Slots: 1, Arch: runtime.GOARCH}),
		time.Minute); err != nil {
		t.Fatal(err)
	}
	task := square(3)
	end := background(t, c, task)
	until(t, "asked for", func() bool { return c.Status().Waiting == 1 })
	in := inWork{Digest: task.Digest, Ack: c.job.subject("bye")}
	for _, kind := range []string{callBeat, callBegin, callFailed, callBeat, callBack} {
		if _, err := nc.Request(c.job.subject("call"), encode(call{Kind: kind, Worker: "w", Tasks: []inWork{in}}),
			time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := bye.NextMsg(100 * time.Millisecond); err == nil {
		t.Errorf("the coordinator published %q", m.Data)
	}
	start(t, WorkOptions{URL: c.URL(), Name: "a"})
	if o := within(t, end); o.err != nil || string(o.r.Value) != "9" {
		t.Errorf("got %s, %v", o.r.Value, o.err)
	}
}

// The saved folder of a task is a folder.
func TestAFileIsNoSavedFolder(t *testing.T) {
	t.Parallel()
	c, _ := listen(t, Options{})
	task := square(3)
	if err := c.store.write(t.Context(), stateName(task.Digest), packed.File, bytes.NewReader(nil)); err != nil {
		t.Fatal(err)
	}
	if ok, err := c.Restore(t.Context(), task.Digest, t.TempDir()); ok || err == nil ||
		!strings.Contains(err.Error(), `has the kind "file", want folder`) {
		t.Errorf("%v, %v", ok, err)
	}
}

func TestACallerCannotGiveATaskAnotherDigest(t *testing.T) {
	t.Parallel()
	c, _ := listen(t, Options{})
	task := square(3)
	task.Digest = digest("x")
	if err := c.Do(t.Context(), task, nil, nil); err == nil || !strings.Contains(err.Error(), "not that of its kind") {
		t.Errorf("got %v", err)
	}
	if _, err := NewTask("kind", "name", 1, map[string]string{"a/../../b": digest("x")}); err == nil {
		t.Error("a need may lead out of its folder")
	}
	if _, err := NewTask("kind", "name", func() {}, nil); errors.Is(err, nil) {
		t.Error("a function is an input")
	}
}

// Another user can make the folder before the worker does, where everybody may write.
func TestAWorkerUsesNoFolderOfOthers(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	open, link := filepath.Join(base, ScratchPrefix+"open"), filepath.Join(base, ScratchPrefix+"link")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777), os.Symlink(t.TempDir(), link)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{open, link} {
		if err := ownFolder(dir); err == nil || !strings.Contains(err.Error(), "use another dir") {
			t.Errorf("%s: got %v", dir, err)
		}
	}
	dir, remove, err := scratch(base, "good")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(ownFolder(dir), remove()); err != nil {
		t.Error(err)
	}
}
