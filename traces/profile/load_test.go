package profile

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write makes files below a new folder and returns its path.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".gz") {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			if _, err := z.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			text = b.String()
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	alone      = "model,dataset,batchsize,amp,speed,gpu_util,gmem_util,gmem,label\nA,D,32,0,320,1,1,2048.5,2\n"
	tensors    = "model_name,tensor_index,tensor_size_mb\nwide,0,1.5\n"
	placements = "placement,local_bsz,step_time,sync_time\n1,10,1.0,0.2\n"
	scaling    = "num_nodes,num_replicas,local_bsz,step_time,sync_time\n1,2,10,1,0.5\n"
	validation = "progress,iteration\n10,100\n"
)

func TestLoadKnowsEveryKindByItsContents(t *testing.T) {
	for _, c := range []struct {
		what, path    string
		files         map[string]string
		models, types string
	}{
		{"gavel, packed", "a.json.gz", map[string]string{"a.json.gz": smallGavel}, "A (batch size 16) A (batch size 32) B C",
			"k80 v100"},
		{"chronus", "x", map[string]string{"x": `{"net": {"2": {"1": 1}}}`}, "net", ""},
		{"a type's folder", "T4", map[string]string{"T4/net.csv": "global_batch_size,1\n8,1\n"}, "net (batch size 8)", "T4"},
		{"one model's file", "T4/net.csv.gz", map[string]string{"T4/net.csv.gz": "global_batch_size,1\n8,1\n"},
			"net (batch size 8)", "T4"},
		{"folders of types", "", map[string]string{"T4/net.csv": "global_batch_size,1\n8,1\n",
			"A100/net.csv": "global_batch_size,1\n8,2\n", "README.md": "x"}, "net (batch size 8)", "A100 T4"},
		{"tiresias", "", map[string]string{"t.csv": "\ufeff" + tensors}, "wide", ""},
		{"lucid", "", map[string]string{"a.csv": alone, "b.csv": pairsHeader + "0,A,D,1,32,0,0.9,B,E,1,64,1,1.05,50\n"},
			"A (D, batch size 32) B (E, batch size 64, amp)", "gpu"},
		{"an application", "net", map[string]string{"net/placements-rtx.csv": placements,
			"net/scalability-dgx-ext.csv": scaling, "net/validation-20.csv": validation}, "net (batch size 20)", "dgx-ext rtx"},
		{"applications, types without names", "",
			map[string]string{"a/placements.csv": placements, "a/validation-10.csv.gz": validation, "b/scalability.csv": scaling,
				"b/validation-20.csv": validation, "b/validation-40.csv": validation},
			"a (batch size 10) b (batch size 20) b (batch size 40)", "gpu"},
	} {
		table, err := LoadIn(context.Background(), nil, filepath.Join(write(t, c.files), filepath.FromSlash(c.path)))
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if m, g := strings.Join(table.Models(), " "), strings.Join(table.Types(), " "); m != c.models || g != c.types {
			t.Errorf("%s: models %s, types %s; want %s, %s", c.what, m, g, c.models, c.types)
		}
	}
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		files map[string]string
		want  string // after the folder
	}{
		{map[string]string{"a.md": "x"}, "there is no .csv and no .json file in it"},
		{map[string]string{"a.csv": "job,duration\n1,2\n"},
			`a.csv: got the header "job,duration", want that of a performance table`},
		{map[string]string{"a.csv": ""}, "a.csv: this is no performance table: "},
		{map[string]string{"a.json": `{"a": {"b": 1}}`},
			`a.json: got JSON with the inner key "b", want Gavel's jobs, as in ('LM (batch size 5)', 1), or Chronus' numbers of GPUs`},
		{map[string]string{"a.csv": alone, "b.csv": tensors}, "want the path of one of them"},
		{map[string]string{"a.json": smallGavel, "b.json": smallGavel}, "want the path of one of them"},
		{map[string]string{"n/placements-x.csv": placements},
			"got 0 batch sizes and 1 measurements of n, want its validation-<batch>.csv and its placements-<type>.csv or scalability-<type>.csv in one folder"},
		{map[string]string{"n/validation-x.csv": validation},
			`got "validation-x", want the batch size in the file's name, as in validation-128.csv`},
		{map[string]string{"n/validation-1.csv": validation, "n/validation-01.csv": validation},
			`validation-1.csv:1: got "1", want each batch size in one file`},
		{map[string]string{"T4/n.csv": "global_batch_size,1\n"}, "there is no model in it"},
		{map[string]string{"a.csv": tensors + "wide,1,x\n"},
			`a.csv:3: tensor_size_mb: got "x", want 0 or a number from 1e-15 to 1e15`},
	} {
		dir := write(t, c.files)
		if _, err := LoadIn(context.Background(), nil, dir); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), dir) {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
	if _, err := LoadIn(context.Background(), nil, filepath.Join(t.TempDir(), "no")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestLoadReportsFailuresOfTheCallersOpen(t *testing.T) {
	dir := write(t, map[string]string{"t.csv": tensors})
	broken := errors.New("broken")
	if _, err := load(dir, []string{filepath.Join(dir, "t.csv")},
		func(string) (io.ReadCloser, error) { return nil, broken }, filepath.Abs); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := load(dir, []string{filepath.Join(dir, "t.csv")},
		func(string) (io.ReadCloser, error) { return badCloser{strings.NewReader(tensors)}, nil },
		filepath.Abs); !errors.Is(err, fs.ErrClosed) {
		t.Error(err)
	}
}

type badCloser struct{ io.Reader }

func (badCloser) Close() error { return fs.ErrClosed }
