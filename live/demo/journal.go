package demo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/lock"
	"clustergym/live"
)

// Settings are what all processes that look at one demo must agree about.
type Settings struct {
	Speed    float64 `json:"speed"`    // 0 = not chosen
	Nodes    string  `json:"nodes"`    // as it is written; "" = not chosen, and guessed
	Begin    float64 `json:"begin"`    // below 0 = not chosen
	Backfill string  `json:"backfill"` // "" = not chosen
}

// Unset are settings of which none is chosen.
func Unset() Settings { return Settings{Begin: -1} }

// Defaults are the settings of a demo for which nobody chooses any.
func Defaults() Settings { return Settings{Speed: 60, Begin: 0.5, Backfill: BackfillEasy} }

// Or returns s, with what d says where nothing is chosen.
func (s Settings) Or(d Settings) Settings {
	if s.Speed == 0 {
		s.Speed = d.Speed
	}
	if s.Nodes == "" {
		s.Nodes = d.Nodes
	}
	if s.Begin < 0 {
		s.Begin = d.Begin
	}
	if s.Backfill == "" {
		s.Backfill = d.Backfill
	}
	return s
}

// differs returns the first setting that is not what s says, and both values.
func (s Settings) differs(o Settings) (key string, is, other any) {
	switch {
	case s.Speed != o.Speed:
		return "speed", s.Speed, o.Speed
	case s.Nodes != o.Nodes:
		return "nodes", s.Nodes, o.Nodes
	case s.Begin != o.Begin:
		return "begin", s.Begin, o.Begin
	case s.Backfill != o.Backfill:
		return "backfill", s.Backfill, o.Backfill
	}
	return "", nil, nil
}

// header is the first line of a journal.
type header struct {
	Settings
	Process int       `json:"process"`
	Size    int64     `json:"size"` // of the history
	Changed time.Time `json:"changed"`
}

// entry is another line of a journal.
type entry struct {
	Began   int64         `json:"began,omitempty"` // when the clock began, nanoseconds since 1970
	At      time.Duration `json:"at,omitempty"`    // of actions, on the clock of the history
	Actions []live.Action `json:"actions,omitempty"`
}

// Journal is what processes share that look at one demo. A nil Journal is shared with nobody. Not safe for concurrent
// use.
type Journal struct {
	Settings
	Joined bool // another process has begun the demo
	dir    string
	file   *os.File
	done   int64 // bytes that were read
}

// patience is how long a process waits for another one that changes a journal.
const patience = 10 * time.Second

// OpenJournal joins the demo of a history if another process looks at it, and begins one otherwise. dir is the folder
// of journals, which nobody else uses. What s chooses must be what the demo has.
func OpenJournal(ctx context.Context, dir, history string, s Settings) (*Journal, error) {
	info, err := os.Stat(history)
	if err != nil {
		return nil, err
	}
	full, err := filepath.Abs(history)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(full))
	name := filepath.Join(dir, "demo-"+hex.EncodeToString(sum[:8])+".jsonl")
	j := &Journal{dir: dir}
	own := header{Settings: s.Or(Defaults()), Process: os.Getpid(), Size: info.Size(), Changed: info.ModTime()}
	err = j.locked(ctx, func() error {
		if j.file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return err
		}
		switch err := lock.File(j.file); {
		case err == nil:
			if err := j.begin(&own); err != nil {
				return err
			}
		case errors.Is(err, lock.ErrHeld):
			j.Joined = true
		default:
			return err
		}
		if err := lock.Shared(j.file); err != nil {
			return err
		}
		return j.join(history, &own, s)
	})
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// begin makes a journal that has a header alone.
func (j *Journal) begin(h *header) error {
	if err := j.file.Truncate(0); err != nil {
		return err
	}
	return j.write(h)
}

// join reads the header.
func (j *Journal) join(history string, own *header, s Settings) error {
	lines, err := j.lines()
	if err != nil {
		return err
	}
	var h header
	if len(lines) == 0 || json.Unmarshal(lines[0], &h) != nil {
		return fmt.Errorf("%s is no journal of a demo; remove it", j.file.Name())
	}
	j.done = int64(len(lines[0])) + 1
	if h.Size != own.Size || !h.Changed.Equal(own.Changed) {
		return fault.Mistakef("%s has changed since process %d began its demo; end the processes that look at it first",
			history, h.Process)
	}
	if key, is, other := h.differs(s.Or(h.Settings)); key != "" {
		return fault.Mistakef("%s: got %v, and the demo of %s runs with %v (process %d began it); want the same, nothing, or a "+
			"copy of the file", fault.Key(key), other, history, is, h.Process)
	}
	j.Settings = h.Settings
	return nil
}

// Close gives the journal back.
func (j *Journal) Close() error {
	if j == nil || j.file == nil {
		return nil
	}
	return j.file.Close()
}

// locked does something while no other process changes a journal.
func (j *Journal) locked(ctx context.Context, do func() error) error {
	if j == nil {
		return do()
	}
	for begun := time.Now(); ; {
		unlock, err := lock.Folder(j.dir)
		if err == nil {
			defer unlock()
			return do()
		}
		if !errors.Is(err, lock.ErrHeld) || time.Since(begun) > patience {
			return err
		}
		t := time.NewTimer(time.Millisecond)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-t.C:
		}
	}
}

// lines returns the whole lines from done to the end, without marks of their ends.
func (j *Journal) lines() ([][]byte, error) {
	var all [][]byte
	b, err := io.ReadAll(io.NewSectionReader(j.file, j.done, 1<<40))
	for err == nil {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if !whole {
			break
		}
		all, b = append(all, line), rest
	}
	return all, err
}

// read returns the entries that have come.
func (j *Journal) read() (list []entry, err error) {
	if j == nil {
		return nil, nil
	}
	lines, err := j.lines()
	for _, line := range lines {
		var e entry
		if json.Unmarshal(line, &e) == nil { // a line that a process has not finished says nothing
			list = append(list, e)
		}
		j.done += int64(len(line)) + 1
	}
	return list, err
}

// add appends an entry, which read does not return. All before it has been read, and the caller holds the lock.
func (j *Journal) add(e *entry) error {
	if j == nil {
		return nil
	}
	return j.write(e)
}

// write puts a line at done, in the place of what a process has not finished.
func (j *Journal) write(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	n, err := j.file.WriteAt(append(b, '\n'), j.done)
	if err != nil {
		return err
	}
	if _, isHeader := v.(*header); !isHeader {
		j.done += int64(n)
	}
	return nil
}
