package study

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"clustergym/internal/ordinary"
	"clustergym/internal/safefile"
	"clustergym/internal/shortage"
)

// cellFormat is the version of the format of cells' files.
const cellFormat = 1

// number is a float that JSON can represent even if it is NaN or infinite.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	if v := float64(n); math.IsNaN(v) || math.IsInf(v, 0) {
		return json.Marshal(strconv.FormatFloat(v, 'g', -1, 64))
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(b []byte) error {
	var v float64
	if len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		v, err := strconv.ParseFloat(s, 64)
		*n = number(v)
		return err
	}
	err := json.Unmarshal(b, &v)
	*n = number(v)
	return err
}

// keptRow is a Row as JSON.
type keptRow struct {
	Table  string            `json:"table"`
	Labels map[string]string `json:"labels,omitempty"`
	Metric string            `json:"metric"`
	Value  number            `json:"value"`
}

// kept is the contents of a cell's file.
type kept struct {
	Format int             `json:"format"`
	Study  string          `json:"study"`
	Key    string          `json:"key"`
	Digest string          `json:"input_sha256"` // of its input and of the digests of the cells that it reads
	Input  json.RawMessage `json:"input"`
	Files  bool            `json:"files"` // whether the cell left files in its folder
	Rows   json.RawMessage `json:"rows"`
	Sum    string          `json:"rows_sha256"`
	Timing struct {
		Wall float64 `json:"wall_s"`
	} `json:"timing"`
}

// place says where a cell is kept, and holds its input.
type place struct {
	study, key    string
	file, work    string
	input         json.RawMessage
	digest, stamp string // stamp is the path of the file in work that holds the digest
	wait          *shortage.Wait
}

// sum returns the SHA-256 of b in hexadecimal.
func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// places returns the files and digests of cells. The digest of a cell covers those of all cells that it reads.
func places(study, dir string, cells []Cell) ([]place, error) {
	out := make([]place, len(cells))
	digests := map[string]string{}
	for i, c := range cells {
		input, err := json.Marshal(c.Input)
		if err != nil {
			return nil, fmt.Errorf("cell %s: input: %w", c.Key, err)
		}
		after := make([]string, len(c.After))
		for k, a := range c.After {
			after[k] = digests[a]
		}
		all, err := json.Marshal([]any{cellFormat, study, c.Key, json.RawMessage(input), after})
		if err != nil {
			return nil, err
		}
		key := filepath.FromSlash(c.Key)
		work := filepath.Join(dir, "work", key)
		out[i] = place{
			study: study, key: c.Key, file: filepath.Join(dir, "cells", key+".json"), work: work,
			input: input, digest: sum(all), stamp: filepath.Join(work, ".input"),
		}
		digests[c.Key] = out[i].digest
	}
	return out, nil
}

// read returns the kept rows, and whether the cell left files. ok is false if no rows are kept, or rows of another
// input. A damaged file is an error.
func (p *place) read() (rows []Row, files, ok bool, err error) {
	b, err := ordinary.Read(p.file, ordinary.Document)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, false, nil
	}
	if err != nil {
		return nil, false, false, err
	}
	var k kept
	if err := json.Unmarshal(b, &k); err != nil {
		return nil, false, false, fmt.Errorf("it is no JSON document: %w", err)
	}
	if k.Format != cellFormat || k.Study != p.study || k.Key != p.key || k.Digest != p.digest {
		return nil, false, false, nil
	}
	if rows, err = decodeRows(k.Rows); err != nil {
		return nil, false, false, fmt.Errorf("its rows cannot be read: %w", err)
	}
	encoded, err := encodeRows(rows)
	if err != nil {
		return nil, false, false, err
	}
	if sum(encoded) != k.Sum {
		return nil, false, false, errors.New("its rows are not those that were written")
	}
	return rows, k.Files, true, nil
}

// encodeRows encodes rows as JSON.
func encodeRows(rows []Row) ([]byte, error) {
	list := make([]keptRow, len(rows))
	for i, r := range rows {
		list[i] = keptRow{r.Table, r.Labels, r.Metric, number(r.Value)}
	}
	return json.Marshal(list)
}

// decodeRows decodes what encodeRows encoded.
func decodeRows(b []byte) ([]Row, error) {
	var list []keptRow
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, err
	}
	rows := make([]Row, len(list))
	for i, r := range list {
		rows[i] = Row{r.Table, r.Labels, r.Metric, float64(r.Value)}
	}
	return rows, nil
}

// begin makes the cell's folder. It empties a folder that was made for another input, and keeps what an interrupted run
// of the same input left.
func (p *place) begin() error {
	if b, err := ordinary.Read(p.stamp, 4096); err != nil || string(b) != p.digest {
		if err := os.RemoveAll(p.work); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(p.work, 0o755); err != nil {
		return err
	}
	return p.wait.Do(p.stamp, func() error { return safefile.Write(p.stamp, []byte(p.digest)) })
}

// end writes the rows to the cell's file. It removes the cell's folder if it holds no files.
func (p *place) end(rows []Row, wall time.Duration) error {
	encoded, err := encodeRows(rows)
	if err != nil {
		return err
	}
	files, err := p.left()
	if err != nil {
		return err
	}
	if !files {
		if err := os.RemoveAll(p.work); err != nil {
			return err
		}
	}
	k := kept{Format: cellFormat, Study: p.study, Key: p.key, Digest: p.digest, Input: p.input, Files: files,
		Rows: encoded, Sum: sum(encoded)}
	k.Timing.Wall = wall.Seconds()
	b, err := json.MarshalIndent(&k, "", " ")
	if err != nil {
		return err
	}
	return p.wait.Do(p.file, func() error {
		if err := os.MkdirAll(filepath.Dir(p.file), 0o755); err != nil {
			return err
		}
		return safefile.Write(p.file, append(b, '\n'))
	})
}

// left reports whether the cell's folder holds files other than the stamp.
func (p *place) left() (bool, error) {
	entries, err := os.ReadDir(p.work)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return len(entries) > 1, err
}
