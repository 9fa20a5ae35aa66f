package profile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"clustergym/internal/plain"
	"clustergym/traces"
)

// The kinds of tables and of their files.
const (
	gavelFile       = "gavel"
	chronusFile     = "chronus"
	elasticflowFile = "elasticflow"
	tiresiasFile    = "tiresias"
	lucidPairs      = "lucid pairs"
	lucidAlone      = "lucid alone"
	siaPlacements   = "sia placements"
	siaScalability  = "sia scalability"
	siaValidation   = "sia validation"
)

// maxFile bounds a file of a table, in bytes; the largest published one has 1.3 million.
const maxFile = 1 << 28

// LoadIn reads the published table at path, which from opens: a file, or a folder with everything below it. It finds
// the kind by the contents:
//
//	Gavel        one of the two files of throughputs
//	Lucid        colocate_info.csv, single_data.csv, or the folder with both
//	ElasticFlow  <type>/<model>.csv: one such file, or a folder of them
//	Sia, Pollux  <application>/{placements,scalability}-<type>.csv and validation-<batch>.csv: the folder of one
//	             application, or a folder of such folders
//	Chronus      model_info.json
//	Tiresias     model_tensors.csv
//
// In a folder, LoadIn ignores files that end neither in .csv nor in .json (plus .gz or .zst if packed). Tables of two
// kinds in one folder are a fault. Errors name file, line and column or key. It ends when ctx is done.
func LoadIn(ctx context.Context, from *traces.Files, path string) (*Table, error) {
	files, err := tableFiles(ctx, from, path)
	if err != nil {
		return nil, err
	}
	return load(path, files, func(path string) (io.ReadCloser, error) { return from.Open(ctx, path) }, from.Abs)
}

// load reads the table at path, which consists of files. at returns where a file lies.
func load(path string, files []string, open func(path string) (io.ReadCloser, error),
	at func(path string) (string, error)) (*Table, error) {
	b := newBuilder()
	b.abs = at
	first, kind := "", ""
	for _, file := range files {
		data, err := readAll(file, open)
		if err != nil {
			return nil, err
		}
		what, err := kindOf(data, file)
		if err != nil {
			return nil, err
		}
		k, _, _ := strings.Cut(what, " ")
		if kind == "" {
			first, kind = file, k
		}
		if k != kind || kind == gavelFile && file != first {
			return nil, fmt.Errorf("profiles %s: got a table of %s in %s and one of %s in %s, want the path of one of them",
				path, kind, first, k, file)
		}
		if err := b.file(what, data, file); err != nil {
			return nil, err
		}
	}
	for _, a := range b.sia {
		if len(a.ends) == 0 || len(a.steps) == 0 {
			return nil,
				fmt.Errorf(
					"profiles %s: got %d batch sizes and %d measurements of %s, want its validation-<batch>.csv and its "+
						"placements-<type>.csv or scalability-<type>.csv in one folder", path, len(a.ends), len(a.steps), a.name)
		}
		a.finish(b)
	}
	t := b.table()
	if len(t.models) == 0 {
		return nil, fmt.Errorf("profiles %s: there is no model in it", path)
	}
	return t, nil
}

// file reads one file of the kind that kindOf returned.
func (b *builder) file(what string, data []byte, file string) error {
	r := bytes.NewReader(data)
	name := plainName(file)
	folder := "."
	if abs, err := b.abs(file); err == nil { // gives "." a name
		folder = filepath.Base(filepath.Dir(abs))
	}
	_, suffix, dashed := strings.Cut(name, "-")
	if !dashed {
		suffix = anyGPU // Pollux has one type and does not name it
	}
	switch what {
	case gavelFile:
		return b.gavel(data, file)
	case chronusFile:
		return b.chronus(data, file)
	case elasticflowFile:
		return b.elasticflow(r, file, name, folder)
	case tiresiasFile:
		return b.tiresias(r, file)
	case lucidPairs:
		return b.lucidPairs(r, file)
	case lucidAlone:
		return b.lucidAlone(r, file)
	case siaPlacements:
		return b.application(folder).placements(r, file, suffix)
	case siaScalability:
		return b.application(folder).scalability(r, file, suffix)
	case siaValidation:
		batch, err := strconv.Atoi(suffix)
		if err != nil || batch < 1 || batch > maxBatch {
			return fmt.Errorf("profiles %s: got %q, want the batch size in the file's name, as in validation-128.csv", file,
				name)
		}
		return b.application(folder).validation(r, file, batch)
	}
	panic("profile: kind " + what)
}

// kindOf returns a file's kind, found by its first keys or its header.
func kindOf(data []byte, file string) (string, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if head := bytes.TrimLeft(data, " \t\r\n"); len(head) > 0 && head[0] == '{' {
		d := newObject(head, file)
		inner := ""
		for i := 0; i < 4; i++ { // { "key" { "key"
			t, err := d.dec.Token()
			if err != nil {
				break
			}
			if s, ok := t.(string); ok && i == 3 {
				inner = s
			}
		}
		if _, _, ok := tuple(inner); ok {
			return gavelFile, nil
		}
		if n, err := strconv.Atoi(inner); err == nil && n > 0 {
			return chronusFile, nil
		}
		return "",
			fmt.Errorf(
				"profiles %s: got JSON with the inner key %q, want Gavel's jobs, as in ('LM (batch size 5)', 1), or Chronus' "+
					"numbers of GPUs", file, plain.Clip(inner, 80))
	}
	d, err := newRows(bytes.NewReader(data), file)
	if err != nil {
		if _, ok := errors.AsType[*traces.RowError](err); ok || err == io.EOF {
			return "", fmt.Errorf("profiles %s: this is no performance table: %w", file, err)
		}
		return "", err
	}
	for _, k := range []struct {
		what    string
		columns []string
	}{
		{elasticflowFile, []string{"global_batch_size"}},
		{tiresiasFile, []string{"model_name", "tensor_size_mb"}},
		{lucidPairs, []string{"model1", "model2", "speed1", "speed2"}},
		{lucidAlone, []string{"model", "dataset", "batchsize", "speed"}},
		{siaPlacements, []string{"placement", "local_bsz"}},
		{siaScalability, []string{"num_replicas", "local_bsz"}},
		{siaValidation, []string{"progress", "iteration"}},
	} {
		if !slices.ContainsFunc(k.columns, func(c string) bool { return !slices.Contains(d.Columns(), c) }) {
			return k.what, nil
		}
	}
	return "", fmt.Errorf("profiles %s: got the header %q, want that of a performance table", file,
		plain.Clip(strings.Join(d.Columns(), ","), 80))
}

// tableFiles returns the files of a table, in lexical order.
func tableFiles(ctx context.Context, from *traces.Files, path string) ([]string, error) {
	files, err := from.List(ctx, path, func(p string) bool {
		ext := filepath.Ext(unpackedName(p))
		return ext == ".csv" || ext == ".json"
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("profiles %s: there is no such file or folder: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("profiles: %w", err)
	}
	if files == nil {
		return nil, fmt.Errorf("profiles %s: there is no .csv and no .json file in it", path)
	}
	return files, nil
}

// unpackedName drops the ending of a packed file.
func unpackedName(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path, ".gz"), ".zst")
}

// plainName returns the last part of path without endings.
func plainName(path string) string {
	name := filepath.Base(unpackedName(path))
	return strings.TrimSuffix(name, filepath.Ext(name))
}

func readAll(file string, open func(path string) (io.ReadCloser, error)) (data []byte, err error) {
	r, err := open(file)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := r.Close(); err == nil {
			err = e
		}
	}()
	data, err = io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("profiles %s: got more than %d bytes, want a table of measurements", file, maxFile)
	}
	return data, err
}
