package envs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"clustergym/bridge/wire"
	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/lab/catalog"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// OwnMaxJobs is MaxJobs for a registry with OwnFiles: its owner may load what the memory takes.
const OwnMaxJobs = 1 << 30

// Cluster returns the cluster that a client described, or if that is nil, the one called name.
func (r *Registry) Cluster(name string, given *cluster.Spec) (spec cluster.Spec, err error) {
	switch {
	case given != nil:
		spec = *given
	case r.cfg.OwnFiles && (filepath.IsAbs(name) || strings.HasPrefix(name, catalog.Prefix)):
		if spec, err = ownCluster(name); err != nil {
			return spec, ownMistake(err)
		}
	default:
		if spec, err = strangersCluster(name); err != nil {
			if f := fault.All(err); len(f) == 1 && r.cfg.OwnFiles {
				err = &fault.Fault{Key: f[0].Key, Value: f[0].Value, Want: f[0].Want + "; the path of a file has a / or an ending"}
			}
			return spec, badKwargs(err)
		}
	}
	if gpus, nodes := sizeOf(&spec); max(gpus, nodes) > r.cfg.MaxGPUs {
		return spec, badKwargs(fault.New("cluster", name,
			fmt.Sprintf("at most %d GPUs or nodes on this server", r.cfg.MaxGPUs)))
	}
	return spec, nil
}

// ownCluster reads a cluster from a file of the server's owner. It opens ordinary files only, so it never waits.
func ownCluster(name string) (cluster.Spec, error) {
	path, err := workload.Located(name)
	if err != nil {
		return cluster.Spec{}, err
	}
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() && !st.IsDir() {
		return cluster.Spec{}, fault.Mistakef("cluster file %s: this is no ordinary file", name)
	}
	return workload.ClusterSpec(name)
}

// ownMistake returns err as a mistake of the server's owner, who may see where in a file it is and what is written
// there.
func ownMistake(err error) error {
	var e *wire.Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &wire.Error{Code: wire.BadKwargs, Msg: strings.ReplaceAll(err.Error(), "\n", "; ")}
}

// describeCluster sets the cluster of a to the one that a client describes with the keys of a cluster file.
func (a *Args) describeCluster(m wire.Map) error {
	if !a.d.Takes.Cluster {
		var found error
		a.d.Foreign(workload.DefaultTraceConfig(), "", func(key string, _ any, want string) {
			found = &fault.Fault{Key: key, Value: "a map", Want: want}
		})
		return found
	}
	spec, err := describedCluster(m)
	if err != nil {
		return err
	}
	if a.given, a.Cluster = spec, spec.Name; spec.Name == "" {
		a.Cluster = "described"
	}
	return nil
}

// describedCluster returns the cluster that a client describes with the keys of a cluster file.
func describedCluster(m wire.Map) (*cluster.Spec, error) {
	tree, err := plainTree("cluster", m, 0)
	if err != nil {
		return nil, err
	}
	text, err := configs.Encode(tree)
	if err != nil {
		return nil, err
	}
	var spec cluster.Spec
	if err := configs.DecodeBytes("", text, &spec); err != nil {
		return nil, errors.New("cluster: " + strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return &spec, nil
}

// plainTree returns a message's maps and lists as a configuration has them. path names v in errors.
func plainTree(path string, v any, depth int) (any, error) {
	if depth > maxArgDepth {
		return nil, fmt.Errorf("%.60s: nested too deep", path)
	}
	switch v := v.(type) {
	case nil:
		return nil, nil
	case wire.Map:
		tree := make(map[string]any, len(v))
		for _, p := range v {
			x, err := plainTree(path+"."+p.Key, p.Value, depth+1)
			if err != nil {
				return nil, err
			}
			tree[p.Key] = x
		}
		return tree, nil
	case []any:
		list := make([]any, len(v))
		for i := range v {
			x, err := plainTree(fmt.Sprintf("%s[%d]", path, i), v[i], depth+1)
			if err != nil {
				return nil, err
			}
			list[i] = x
		}
		return list, nil
	}
	x, err := plainValue(v)
	if err != nil {
		return nil, fmt.Errorf("%.60s: %w", path, err)
	}
	return x, nil
}

// fresh is for how long after its last change a file is known by its contents. The clock of a file system may stand for
// some time, two seconds at most, so two changes within it can have one time.
const fresh = 3 * time.Second

// mostHashed is how many bytes of just changed files are hashed for one request. If there are more, the files are read
// anew.
const mostHashed = 64 << 20

// stamp describes the state of a file, or of all files in a folder, so that a changed one is read anew.
func stamp(ctx context.Context, from *traces.Files, at string) (string, error) {
	files, err := from.List(ctx, at, func(string) bool { return true })
	if err != nil {
		return "", err
	}
	var b strings.Builder
	left := int64(mostHashed)
	for _, path := range files {
		st, err := from.Stat(path)
		if err != nil {
			fmt.Fprintln(&b, path, "is not read") // reading says what is wrong with it, if it is read at all
			continue
		}
		fmt.Fprintln(&b, path, st.Size(), st.ModTime().UnixNano())
		if !st.Mode().IsRegular() || time.Since(st.ModTime()) >= fresh {
			continue
		}
		if left -= st.Size(); left < 0 {
			fmt.Fprintln(&b, time.Now().UnixNano()) // no other request has this stamp
			continue
		}
		sum, err := contents(ctx, from, path, st.Size())
		if err != nil {
			return "", err
		}
		fmt.Fprintln(&b, sum)
	}
	return b.String(), nil
}

// contents returns a hash of the first size bytes of a file.
func contents(ctx context.Context, from *traces.Files, path string, size int64) (string, error) {
	f, err := from.Raw(ctx, path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(workload.NewCtxReader(ctx, f), size)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// ownRefusal says what is wrong with a name of the server's owner.
func ownRefusal(key, name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.New(key, name, "a file that exists")
	case err != nil:
		return fault.New(key, name, "a file that can be read: "+err.Error())
	}
	return fault.New(key, name, "an absolute path, or get:NAME")
}
