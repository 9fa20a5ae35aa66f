package workqueue

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"clustergym/internal/packed"
)

// cache keeps what tasks need between tasks. What was not used for longest is removed when it becomes too large, but
// nothing that is in use.
type cache struct {
	dir   string
	limit int64

	mu    sync.Mutex
	held  map[string]*need
	clock int64
	size  int64
}

// need is a file or folder in the cache.
type need struct {
	fetch sync.Mutex // held while it is fetched
	path  string     // "" = it is not there
	size  int64
	users int
	last  int64
}

func newCache(dir string, limit int64) *cache {
	return &cache{dir: dir, limit: limit, held: map[string]*need{}}
}

// get returns the path of what has a digest, from the store if it is not here. It stays until release is called.
func (c *cache) get(ctx context.Context, digest string, s *store) (path string, release func(), err error) {
	c.mu.Lock()
	n := c.held[digest]
	if n == nil {
		n = &need{}
		c.held[digest] = n
	}
	n.users++
	c.clock++
	n.last = c.clock
	c.mu.Unlock()
	release = sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		n.users--
		c.shrink()
	})
	n.fetch.Lock()
	defer n.fetch.Unlock()
	if n.path != "" {
		return n.path, release, nil
	}
	path = filepath.Join(c.dir, digest)
	size, err := c.bring(ctx, digest, path, s)
	if err != nil {
		release()
		return "", nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n.path, n.size = path, size
	c.size += size
	c.shrink()
	return path, release, nil
}

// bring fetches what has a digest.
func (c *cache) bring(ctx context.Context, digest, path string, s *store) (size int64, err error) {
	part := path + ".part"
	for _, p := range []string{part, path} {
		if err := os.RemoveAll(p); err != nil {
			return 0, err
		}
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return 0, err
	}
	if err := s.get(ctx, digest, part, digest, packed.File, packed.Folder); err != nil {
		return 0, errors.Join(err, os.RemoveAll(part)) // a bomb must not stay on the disk
	}
	if err := os.Rename(part, path); err != nil {
		return 0, err
	}
	err = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		st, err := d.Info()
		if err == nil {
			size += st.Size()
		}
		return err
	})
	return size, err
}

// shrink removes what was not used for longest until the rest fits.
func (c *cache) shrink() {
	for c.size > c.limit {
		var oldest *need
		var name string
		for digest, n := range c.held {
			if n.users == 0 && n.path != "" && (oldest == nil || n.last < oldest.last) {
				oldest, name = n, digest
			}
		}
		if oldest == nil {
			return
		}
		c.size -= oldest.size
		delete(c.held, name)
		_ = os.RemoveAll(oldest.path) // the worker removes the rest when it ends
	}
}
